//! The numbers about the machinery itself, under the names that dashboards know.

use super::{Counter, Gauge, Histogram, Registry};

/// Bounds in seconds for reconciles and admission.
const WORK: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
/// Bounds in seconds for queues: ten nanoseconds to a quarter of an hour, tenfold each.
const QUEUE: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0];
/// Bounds in seconds that Prometheus' library uses unless told otherwise.
const PLAIN: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The families that every program of ours has. Clones are the same families.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "each field but the registry is the family whose name and help text stand below"
)]
pub struct Framework {
    pub registry: Registry,
    pub reconcile_total: Counter,
    pub reconcile_errors: Counter,
    pub terminal_errors: Counter,
    pub reconcile_panics: Counter,
    pub controller_restarts: Counter,
    pub reconcile_time: Histogram,
    pub max_concurrent: Gauge,
    pub active_workers: Gauge,
    pub queue_depth: Gauge,
    pub queue_adds: Counter,
    pub queue_retries: Counter,
    pub queue_duration: Histogram,
    pub work_duration: Histogram,
    pub unfinished_work: Gauge,
    pub longest_running: Gauge,
    pub webhook_requests: Counter,
    pub webhook_latency: Histogram,
    pub webhook_in_flight: Gauge,
    pub webhook_panics: Counter,
    pub conversion_panics: Counter,
    pub client_requests: Counter,
    pub certificate_reads: Counter,
    pub certificate_errors: Counter,
    pub is_leader: Gauge,
    pub master_status: Gauge,
    pub slow_path: Counter,
    pub effects: Counter,
    pub freshness_waits: Counter,
    pub freshness_timeouts: Counter,
    pub cache_objects: Gauge,
    pub cache_errors: Counter,
    pub cache_panics: Counter,
    pub unreadable_objects: Gauge,
    pub events_dropped: Counter,
}

impl Framework {
    /// The families in this registry.
    pub fn new(registry: &Registry) -> Self {
        const CONTROLLER: &[&str] = &["controller"];
        const NAME: &[&str] = &["name"];
        const WEBHOOK: &[&str] = &["webhook"];
        let counter = |name, help, labels| registry.counter(name, help, labels);
        let gauge = |name, help, labels| registry.gauge(name, help, labels);
        Self {
            registry: registry.clone(),
            reconcile_total: counter(
                "controller_runtime_reconcile_total",
                "Reconciles by controller and result.",
                &["controller", "result"],
            ),
            reconcile_errors: counter(
                "controller_runtime_reconcile_errors_total",
                "Reconciles that failed.",
                CONTROLLER,
            ),
            terminal_errors: counter(
                "controller_runtime_terminal_reconcile_errors_total",
                "Reconciles that failed and are not tried again before the object changes.",
                CONTROLLER,
            ),
            reconcile_panics: counter(
                "controller_runtime_reconcile_panics_total",
                "Reconciles that panicked.",
                CONTROLLER,
            ),
            controller_restarts: counter(
                "kruise_controller_restarts_total",
                "Controllers that failed as a whole and were started again.",
                CONTROLLER,
            ),
            reconcile_time: registry.histogram(
                "controller_runtime_reconcile_time_seconds",
                "How long reconciles take.",
                CONTROLLER,
                WORK,
            ),
            max_concurrent: gauge(
                "controller_runtime_max_concurrent_reconciles",
                "How many reconciles may run at once.",
                CONTROLLER,
            ),
            active_workers: gauge(
                "controller_runtime_active_workers",
                "How many reconciles run now.",
                CONTROLLER,
            ),
            queue_depth: gauge("workqueue_depth", "Keys that wait.", NAME),
            queue_adds: counter("workqueue_adds_total", "Keys that were added.", NAME),
            queue_retries: counter("workqueue_retries_total", "Keys that were tried again.", NAME),
            queue_duration: registry.histogram(
                "workqueue_queue_duration_seconds",
                "How long keys wait before they are taken.",
                NAME,
                QUEUE,
            ),
            work_duration: registry.histogram(
                "workqueue_work_duration_seconds",
                "How long keys are worked on.",
                NAME,
                QUEUE,
            ),
            unfinished_work: gauge(
                "workqueue_unfinished_work_seconds",
                "Seconds spent so far on keys that are worked on now.",
                NAME,
            ),
            longest_running: gauge(
                "workqueue_longest_running_processor_seconds",
                "Seconds spent so far on the key that is worked on longest.",
                NAME,
            ),
            webhook_requests: counter(
                "controller_runtime_webhook_requests_total",
                "Admission requests by path and code.",
                &["code", "webhook"],
            ),
            webhook_latency: registry.histogram(
                "controller_runtime_webhook_latency_seconds",
                "How long admission requests take.",
                WEBHOOK,
                PLAIN,
            ),
            webhook_in_flight: gauge(
                "controller_runtime_webhook_requests_in_flight",
                "Admission requests that are worked on now.",
                WEBHOOK,
            ),
            webhook_panics: counter(
                "controller_runtime_webhook_panics_total",
                "Admission requests that panicked.",
                &[],
            ),
            conversion_panics: counter(
                "controller_runtime_conversion_webhook_panics_total",
                "Conversion requests that panicked.",
                &[],
            ),
            client_requests: counter(
                "rest_client_requests_total",
                "Calls of the API by code, method and host.",
                &["code", "host", "method"],
            ),
            certificate_reads: counter(
                "certwatcher_read_certificate_total",
                "How often the certificate was read.",
                &[],
            ),
            certificate_errors: counter(
                "certwatcher_read_certificate_errors_total",
                "How often the certificate could not be read.",
                &[],
            ),
            is_leader: gauge(
                "kruise_manager_is_leader",
                "Whether this replica leads: 1 on the leader, 0 elsewhere.",
                &[],
            ),
            master_status: gauge(
                "leader_election_master_status",
                "Whether this process holds the lease: 1 or 0.",
                NAME,
            ),
            slow_path: counter(
                "leader_election_slowpath_total",
                "Renewals of the lease that had to read it first.",
                NAME,
            ),
            effects: counter(
                "kruise_effects_total",
                "Changes of the cluster by controller, verb, resource and result.",
                &["controller", "verb", "resource", "result"],
            ),
            freshness_waits: counter(
                "kruise_freshness_waits_total",
                "Reconciles that waited until a cache had seen an own write.",
                CONTROLLER,
            ),
            freshness_timeouts: counter(
                "kruise_freshness_timeouts_total",
                "Own writes that a cache did not show in time, so that it had to list anew.",
                CONTROLLER,
            ),
            cache_objects: gauge("kruise_cache_objects", "Objects in caches.", &["resource"]),
            cache_errors: counter(
                "kruise_cache_errors_total",
                "Watches and lists that failed.",
                &["resource"],
            ),
            cache_panics: counter(
                "kruise_cache_panics_total",
                "Panics at an object of a cache, in an index or in who follows the cache.",
                &["resource"],
            ),
            unreadable_objects: gauge(
                "kruise_unreadable_objects",
                "Objects with a field that cannot be read.",
                &["kind"],
            ),
            events_dropped: counter(
                "kruise_events_dropped_total",
                "Events that were not written, by reason.",
                &["reason"],
            ),
        }
    }
}
