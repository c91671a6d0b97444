//! The numbers about the process that every Prometheus library gives: `process_*`.

use std::fmt::Write as _;

/// The families, in the text format. What the system does not tell is left out.
pub fn text() -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
    };
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the name of the program and may hold blanks; the third begins after its bracket.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<f64>().ok());
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let page = rustix::param::page_size() as f64;
    let cpu = field(14).zip(field(15)).map(|(user, system)| (user + system) / ticks);
    family("process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", cpu);
    let resident = field(24).map(|pages| pages * page);
    family("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", resident);
    family("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", field(23));
    let files = std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    family("process_open_fds", "gauge", "Number of open file descriptors.", files);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    family(
        "process_max_fds",
        "gauge",
        "Maximum number of open file descriptors.",
        limit.map(|limit| limit as f64),
    );
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    // Libraries write the largest number where there is no limit.
    let limit = limit.unwrap_or(u64::MAX) as f64;
    let help = "Maximum amount of virtual memory available in bytes.";
    family("process_virtual_memory_max_bytes", "gauge", help, Some(limit));
    let booted = std::fs::read_to_string("/proc/stat").ok().and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok())
    });
    let started = booted.zip(field(22)).map(|(booted, after)| booted + after / ticks);
    family(
        "process_start_time_seconds",
        "gauge",
        "Start time of the process since unix epoch in seconds.",
        started,
    );
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_process_knows_its_time_and_memory() {
        let text = super::text();
        for name in [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_open_fds",
            "process_start_time_seconds",
        ] {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
            assert!(value.is_some_and(|value| value >= 0.0), "{name}: {text}");
        }
    }
}
