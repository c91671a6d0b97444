//! Numbers for dashboards, in the text format of Prometheus.
//!
//! Names are exactly as given: dashboards of the original must keep working. Every family has a bounded number of
//! series; what comes beyond it is counted under the label value `other`, so that no user can grow our memory.

mod framework;

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use framework::Framework;

use crate::decode::contained;

/// How many series a family may have unless told otherwise.
pub const MAX_SERIES: usize = 1000;
/// The label value of all series beyond the bound.
pub const OTHER: &str = "other";

/// All families of a program. Clones are the same registry.
///
/// ```
/// use kruise_runtime::metrics::Registry;
///
/// let registry = Registry::default();
/// let refused = registry.counter("refused", "Refused requests.", &["username"]);
/// refused.inc(&["jane"]);
/// assert!(registry.text().contains("refused{username=\"jane\"} 1\n"));
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    families: Arc<Mutex<BTreeMap<&'static str, Arc<Family>>>>,
    before: Arc<Mutex<Vec<Before>>>,
}

type Before = Arc<dyn Fn() + Send + Sync>;

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Registry").finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    buckets: &'static [f64],
    limit: usize,
    series: Mutex<BTreeMap<Vec<String>, Series>>,
}

#[derive(Debug, Default)]
struct Series {
    /// The value, or the sum of a histogram.
    value: f64,
    count: u64,
    buckets: Box<[u64]>,
}

impl Registry {
    /// A family of numbers that only grow. A family that is there already is shared.
    pub fn counter(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Counter {
        Counter(self.family(name, help, Kind::Counter, labels, &[]))
    }

    /// A family of numbers that go up and down.
    pub fn gauge(&self, name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Gauge {
        Gauge(self.family(name, help, Kind::Gauge, labels, &[]))
    }

    /// The same for a family that may have more series than others.
    pub fn wide_gauge(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        limit: usize,
    ) -> Gauge {
        Gauge(self.limited_family(name, help, Kind::Gauge, labels, &[], limit))
    }

    /// A family of distributions, counted up to each of the bounds.
    pub fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        buckets: &'static [f64],
    ) -> Histogram {
        Histogram(self.family(name, help, Kind::Histogram, labels, buckets))
    }

    fn family(
        &self,
        name: &'static str,
        help: &'static str,
        kind: Kind,
        labels: &'static [&'static str],
        buckets: &'static [f64],
    ) -> Arc<Family> {
        self.limited_family(name, help, kind, labels, buckets, MAX_SERIES)
    }

    fn limited_family(
        &self,
        name: &'static str,
        help: &'static str,
        kind: Kind,
        labels: &'static [&'static str],
        buckets: &'static [f64],
        limit: usize,
    ) -> Arc<Family> {
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let family = families.entry(name).or_insert_with(|| {
            let family = Family { name, help, kind, labels, buckets, limit, series: Mutex::default() };
            if labels.is_empty() {
                // Numbers without labels are there from the start, as zero.
                family.update(&[], |_| {});
            }
            Arc::new(family)
        });
        family.clone()
    }

    /// Calls this each time before the numbers are read, for those that only time changes.
    pub fn before_reading(&self, update: impl Fn() + Send + Sync + 'static) {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(update));
    }

    /// Everything, as Prometheus reads it. Families without a series yet are left out.
    pub fn text(&self) -> String {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for update in before {
            // Who panics has an old number; all others can still be read.
            if contained(|| update()).is_none() {
                tracing::error!("panicked while a number was brought up to date");
            }
        }
        let families: Vec<Arc<Family>> =
            self.families.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        let mut text = String::new();
        for family in families {
            family.write(&mut text);
        }
        text
    }
}

impl Family {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<String>, Series>> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, values: &[&str], change: impl FnOnce(&mut Series)) {
        let mut series = self.lock();
        let mut key: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        key.resize(self.labels.len(), String::new());
        if !series.contains_key(&key) && series.len() >= self.limit {
            key = vec![OTHER.to_owned(); self.labels.len()];
        }
        let found = series.entry(key).or_insert_with(|| Series {
            buckets: vec![0; self.buckets.len()].into_boxed_slice(),
            ..Series::default()
        });
        change(found);
    }

    fn value(&self, values: &[&str]) -> f64 {
        let key: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        self.lock().get(&key).map_or(0.0, |series| series.value)
    }

    fn write(&self, text: &mut String) {
        let series = self.lock();
        if series.is_empty() {
            return;
        }
        let Self { name, help, kind, .. } = self;
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (values, series) in series.iter() {
            self.write_series(text, values, series);
        }
    }

    fn write_series(&self, text: &mut String, values: &[String], series: &Series) {
        let name = self.name;
        let labels = |more: Option<&str>| {
            let mut pairs: Vec<String> = self
                .labels
                .iter()
                .zip(values)
                .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
                .collect();
            pairs.extend(more.map(|bound| format!("le=\"{bound}\"")));
            if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
        };
        if self.kind != Kind::Histogram {
            let _ = writeln!(text, "{name}{} {}", labels(None), number(series.value));
            return;
        }
        for (bound, count) in self.buckets.iter().zip(&series.buckets) {
            let _ = writeln!(text, "{name}_bucket{} {count}", labels(Some(&number(*bound))));
        }
        let _ = writeln!(text, "{name}_bucket{} {}", labels(Some("+Inf")), series.count);
        let _ = writeln!(text, "{name}_sum{} {}", labels(None), number(series.value));
        let _ = writeln!(text, "{name}_count{} {}", labels(None), series.count);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A number as Prometheus' own library writes it: very small and very large ones with an exponent.
fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value}")
}

/// Numbers that only grow.
#[derive(Clone, Debug)]
pub struct Counter(Arc<Family>);

impl Counter {
    /// One more, for these label values.
    pub fn inc(&self, labels: &[&str]) {
        self.add(labels, 1.0);
    }

    /// So many more.
    pub fn add(&self, labels: &[&str], by: f64) {
        self.0.update(labels, |series| series.value += by);
    }

    /// Shows the series from now on, as zero.
    pub fn touch(&self, labels: &[&str]) {
        self.0.update(labels, |_| {});
    }

    /// The number so far.
    pub fn value(&self, labels: &[&str]) -> f64 {
        self.0.value(labels)
    }
}

/// Numbers that go up and down.
#[derive(Clone, Debug)]
pub struct Gauge(Arc<Family>);

impl Gauge {
    /// Removes a series: what it was about is over.
    pub fn remove(&self, labels: &[&str]) {
        let key: Vec<String> = labels.iter().map(|value| (*value).to_owned()).collect();
        self.0.lock().remove(&key);
    }

    /// Sets the number.
    pub fn set(&self, labels: &[&str], value: f64) {
        self.0.update(labels, |series| series.value = value);
    }

    /// Changes the number.
    pub fn add(&self, labels: &[&str], by: f64) {
        self.0.update(labels, |series| series.value += by);
    }

    /// The number now.
    pub fn value(&self, labels: &[&str]) -> f64 {
        self.0.value(labels)
    }
}

/// Distributions.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Family>);

impl Histogram {
    /// Counts one value.
    pub fn observe(&self, labels: &[&str], value: f64) {
        self.0.update(labels, |series| {
            series.value += value;
            series.count += 1;
            for (bound, count) in self.0.buckets.iter().zip(&mut series.buckets) {
                *count += u64::from(value <= *bound);
            }
        });
    }

    /// How many values there were.
    pub fn count(&self, labels: &[&str]) -> u64 {
        let key: Vec<String> = labels.iter().map(|value| (*value).to_owned()).collect();
        self.0.lock().get(&key).map_or(0, |series| series.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_prometheus_reads() {
        let registry = Registry::default();
        registry.gauge("a", "A.", &[]).set(&[], 1.0);
        registry.counter("b", "B.", &["x"]).add(&["q\"\n"], 2.5);
        let times = registry.histogram("c", "C.", &["x"], &[1e-8, 0.5, 1.0]);
        times.observe(&["v"], 0.5);
        times.observe(&["v"], 7.0);
        registry.counter("unused", "Nothing yet.", &["x"]);
        assert_eq!(
            registry.text(),
            "# HELP a A.\n# TYPE a gauge\na 1\n\
             # HELP b B.\n# TYPE b counter\nb{x=\"q\\\"\\n\"} 2.5\n\
             # HELP c C.\n# TYPE c histogram\n\
             c_bucket{x=\"v\",le=\"1e-08\"} 0\nc_bucket{x=\"v\",le=\"0.5\"} 1\nc_bucket{x=\"v\",le=\"1\"} 1\n\
             c_bucket{x=\"v\",le=\"+Inf\"} 2\nc_sum{x=\"v\"} 7.5\nc_count{x=\"v\"} 2\n"
        );
    }

    #[test]
    fn who_panics_while_numbers_are_read_hides_no_other_number() {
        let registry = Registry::default();
        let gauge = registry.gauge("age", "Age.", &[]);
        registry.before_reading(|| panic!("never again"));
        registry.before_reading(move || gauge.set(&[], 7.0));
        for _ in 0..2 {
            assert!(registry.text().contains("age 7\n"), "{}", registry.text());
        }
    }

    #[test]
    fn series_beyond_the_bound_are_folded_into_one() {
        let registry = Registry::default();
        let counter = registry.counter("n", "N.", &["username"]);
        for user in 0..MAX_SERIES + 50 {
            counter.inc(&[&format!("u{user}")]);
        }
        assert_eq!(counter.value(&[OTHER]), 50.0);
        assert_eq!(counter.value(&["u7"]), 1.0);
    }
}
