//! What the failure of a pod means by the job's own rules. The first rule that fits decides.

use serde_json::Value;

use super::super::object::{items, number, text};
use super::super::pods::Pod;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// One failure more.
    Counts,
    /// As if the pod had never been.
    Ignored,
    /// The whole job fails, and why.
    FailsJob(String),
}

pub(super) fn judge(job: &Value, pod: &Pod) -> Judgement {
    let rules = items(job, "/spec/podFailurePolicy/rules");
    if rules.is_empty() {
        return Judgement::Counts;
    }
    by_rules(rules, &pod.record.value())
}

fn by_rules(rules: &[Value], pod: &Value) -> Judgement {
    let place = format!("{}/{}", text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    for (index, rule) in rules.iter().enumerate() {
        let action = text(rule, "/action");
        let rest = format!("matching {action} rule at index {index}");
        let why = match rule.get("onExitCodes").filter(|codes| codes.is_object()) {
            Some(codes) => exited(pod, codes).map(|(name, code)| {
                format!("Container {name} for pod {place} failed with exit code {code} {rest}")
            }),
            None => condition(pod, items(rule, "/onPodConditions"))
                .map(|kind| format!("Pod {place} has condition {kind} {rest}")),
        };
        match (why, action) {
            // Indexes have no limits of their own here, so that their failures are ordinary ones.
            (None, _) | (Some(_), "FailIndex") => {}
            (Some(_), "Ignore") => return Judgement::Ignored,
            (Some(why), "FailJob") => return Judgement::FailsJob(why),
            (Some(_), _) => return Judgement::Counts,
        }
    }
    Judgement::Counts
}

/// The first container that failed with a code that fits.
fn exited<'p>(pod: &'p Value, codes: &Value) -> Option<(&'p str, i64)> {
    let wanted = text(codes, "/containerName");
    let listed = |code: i64| items(codes, "/values").iter().any(|one| one.as_i64() == Some(code));
    let lists = ["/status/containerStatuses", "/status/initContainerStatuses"];
    lists.into_iter().flat_map(|list| items(pod, list)).find_map(|status| {
        let name = text(status, "/name");
        let code = number(status, "/state/terminated/exitCode").filter(|code| *code != 0)?;
        let fits = match text(codes, "/operator") {
            "In" => listed(code),
            "NotIn" => !listed(code),
            _ => false,
        };
        (fits && (wanted.is_empty() || name == wanted)).then_some((name, code))
    })
}

/// The first condition of the pod that a pattern names.
fn condition<'p>(pod: &'p Value, patterns: &[Value]) -> Option<&'p str> {
    let status = |value: &Value| match text(value, "/status") {
        "" => "True".to_owned(),
        status => status.to_owned(),
    };
    let fits = |seen: &&Value| {
        patterns.iter().any(|one| one.get("type") == seen.get("type") && status(one) == status(seen))
    };
    items(pod, "/status/conditions").iter().find(fits).map(|seen| text(seen, "/type"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(rules: &Value, expected: &str) {
        let ended =
            |name: &str, code: i64| json!({"name": name, "state": {"terminated": {"exitCode": code}}});
        let pod = json!({
            "metadata": {"namespace": "n", "name": "p"},
            "status": {
                "containerStatuses": [ended("good", 0), ended("bad", 3)],
                "initContainerStatuses": [ended("init", 7)],
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
            },
        });
        let judgement = match by_rules(rules.as_array().unwrap(), &pod) {
            Judgement::Counts => "counts".to_owned(),
            Judgement::Ignored => "ignored".to_owned(),
            Judgement::FailsJob(why) => why,
        };
        assert_eq!(judgement, expected, "{rules}");
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let codes = |action: &str, operator: &str, values: &[i64]| json!({"action": action, "onExitCodes": {"operator": operator, "values": values}});
        let of = |name: &str| {
            let codes = json!({"containerName": name, "operator": "NotIn", "values": [1]});
            json!({"action": "FailJob", "onExitCodes": codes})
        };
        let condition = |action: &str, kind: &str| json!({"action": action, "onPodConditions": [{"type": kind, "status": "True"}]});
        check(&json!([]), "counts");
        check(&json!([codes("Ignore", "In", &[4])]), "counts");
        check(&json!([codes("Ignore", "In", &[3])]), "ignored");
        check(&json!([codes("Count", "In", &[3]), codes("Ignore", "In", &[3])]), "counts");
        check(
            &json!([codes("Ignore", "In", &[9]), codes("FailJob", "NotIn", &[9])]),
            "Container bad for pod n/p failed with exit code 3 matching FailJob rule at index 1",
        );
        check(&json!([of("good")]), "counts");
        check(
            &json!([of("init")]),
            "Container init for pod n/p failed with exit code 7 matching FailJob rule at index 0",
        );
        check(&json!([condition("Ignore", "DisruptionTarget")]), "ignored");
        check(&json!([condition("Ignore", "Other")]), "counts");
        check(
            &json!([condition("FailJob", "DisruptionTarget")]),
            "Pod n/p has condition DisruptionTarget matching FailJob rule at index 0",
        );
    }
}
