//! The numbers about the process that every Prometheus library gives.

use std::fmt::Write as _;

/// The families, in the text format. What the system does not tell is left out.
pub(super) fn text() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program is in brackets and may hold blanks; the third field begins after it.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<f64>().ok();
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let page = rustix::param::page_size() as f64;
    let cpu = field(14).zip(field(15)).map(|(user, system)| (user + system) / ticks);
    let files = std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    let families = [
        ("process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", cpu),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory size in bytes.",
            field(24).map(|pages| pages * page),
        ),
        ("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", field(23)),
        ("process_open_fds", "gauge", "Number of open file descriptors.", files),
    ];
    let mut text = String::new();
    for (name, kind, help, value) in families {
        if let Some(value) = value {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
    }
    text
}
