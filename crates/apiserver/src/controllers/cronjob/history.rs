//! Which finished jobs a CronJob no longer keeps.

use jiff::Timestamp;
use serde_json::Value;

use super::super::object::{condition_is_true, number, text, time};

/// Names and uids of the finished jobs beyond the limits, the oldest first.
pub(super) fn surplus(cron: &Value, jobs: &[Value]) -> Vec<(String, String)> {
    let mut doomed = Vec::new();
    for (limit, kind) in [("successfulJobsHistoryLimit", "Complete"), ("failedJobsHistoryLimit", "Failed")] {
        let Some(limit) = number(cron, &format!("/spec/{limit}")) else { continue };
        let mut ended: Vec<&Value> = jobs.iter().filter(|job| condition_is_true(job, kind)).collect();
        ended.sort_by_key(|job| {
            let started = time(job, "/status/startTime").unwrap_or(Timestamp::MAX);
            (started, text(job, "/metadata/name"))
        });
        let surplus = ended.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        doomed.extend(
            ended
                .into_iter()
                .take(surplus)
                .map(|job| (text(job, "/metadata/name").to_owned(), text(job, "/metadata/uid").to_owned())),
        );
    }
    doomed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_oldest_jobs_of_each_kind_go_first() {
        let job = |name: &str, kind: &str, started: &str| {
            json!({
                "metadata": {"name": name, "uid": name},
                "status": {"startTime": started, "conditions": [{"type": kind, "status": "True"}]},
            })
        };
        let jobs = [
            job("c", "Complete", "2026-01-01T00:03:00Z"),
            job("a", "Complete", "2026-01-01T00:01:00Z"),
            job("b", "Complete", "2026-01-01T00:02:00Z"),
            job("f", "Failed", "2026-01-01T00:01:00Z"),
            job("r", "Suspended", "2026-01-01T00:01:00Z"),
        ];
        let limits = |good: i64, bad: i64| json!({"spec": {"successfulJobsHistoryLimit": good, "failedJobsHistoryLimit": bad}});
        let names = |cron: Value| -> String { surplus(&cron, &jobs).into_iter().map(|job| job.0).collect() };
        assert_eq!(names(limits(2, 1)), "a");
        assert_eq!(names(limits(0, 0)), "abcf");
        assert_eq!(names(json!({"spec": {}})), "");
    }
}
