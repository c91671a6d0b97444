//! Objects as they are stored, read as far as they can be read.
//!
//! Whoever may write an object can put something into it that our types cannot hold: a time beyond the calendar, a number
//! that is too large, a text in the place of a list. One such field must not hide its object, and one such object must not
//! hide all others of its kind. So an object is read strictly first, straight from the text. Only where that fails it is
//! taken apart: times beyond the calendar become its last one, and what still cannot be read is left out, one field after
//! the other, and named.

mod parse;
mod raw;
mod tracked;

use std::{fmt, panic::AssertUnwindSafe};

use kruise_core::time;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use raw::Raw;
use tracked::Failed;

/// How many fields of one object may be left out before all of it counts as unreadable.
const MOST: usize = 64;
/// What stands for a time of deletion that cannot be read: the object is being deleted all the same, since long ago.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";

/// One step into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a member.
    Key(String),
    /// Into an item of a list.
    Index(usize),
}

/// Where a field is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Step>);

impl Path {
    /// A path of members.
    pub fn of(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| Step::Key((*key).to_owned())).collect())
    }

    /// Whether it begins with these members.
    pub fn begins(&self, keys: &[&str]) -> bool {
        self.0.len() >= keys.len()
            && self.0.iter().zip(keys).all(|(step, key)| matches!(step, Step::Key(own) if own == key))
    }

    fn find<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        })
    }

    fn remove(&self, value: &mut Value) -> bool {
        let Some((last, parents)) = self.0.split_last() else { return false };
        match (Self(parents.to_vec()).find(value), last) {
            (Some(Value::Object(members)), Step::Key(key)) => members.remove(key).is_some(),
            (Some(Value::Array(items)), Step::Index(index)) if *index < items.len() => {
                items.remove(*index);
                true
            }
            _ => false,
        }
    }
}

/// As people write paths, cut where keys are endless.
impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("the whole object");
        }
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) => {
                    let dot = if index == 0 { "" } else { "." };
                    write!(formatter, "{dot}{}", cut(key, 64))?;
                }
                Step::Index(index) => write!(formatter, "[{index}]")?,
            }
            if index == 15 {
                return formatter.write_str("...");
            }
        }
        Ok(())
    }
}

/// A field that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Which one.
    pub path: Path,
    /// Why not.
    pub why: String,
}

impl Unread {
    fn new(path: Path, why: &str) -> Self {
        Self { path, why: cut(why, 200).to_owned() }
    }

    /// Whether rules can do without it: what an object is and what is wanted of it are known all the same. A status that
    /// is not known counts as one that is not reached.
    pub fn is_harmless(&self) -> bool {
        let of_metadata =
            ["managedFields", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
        self.path.begins(&["status"]) && self.path.0.len() > 1
            || of_metadata.iter().any(|field| self.path.begins(&["metadata", field]))
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.why)
    }
}

fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// JSON as a tree, whatever is in it. Of a member that is there twice the last one counts. Numbers that no number can hold
/// and what is nested without end are null and named.
pub fn tree(text: &str) -> (Value, Vec<Unread>) {
    let mut unread = Vec::new();
    (parse::tree(text, &mut unread), unread)
}

/// A value of this type, read as far as it can be read. What could not is named; what must be there and is not is an error.
///
/// ```
/// use kruise_core::pod::Pod;
/// use kruise_runtime::decode;
///
/// let text = r#"{"metadata": {"name": "web"}, "status": {"startTime": "9999-12-31T23:59:59Z", "phase": 7}}"#;
/// let (pod, unread) = decode::lenient::<Pod>(text);
/// assert_eq!(pod.unwrap().metadata.name, "web");
/// assert_eq!(unread[0].path.to_string(), "status.phase");
/// ```
pub fn lenient<T: DeserializeOwned>(text: &str) -> (Result<T, Unread>, Vec<Unread>) {
    if let Some(Ok(read)) = contained(|| serde_json::from_str(text)) {
        return (Ok(read), Vec::new());
    }
    let (mut value, mut unread) = tree(text);
    let read = fit(&mut value, &|_| true, &mut unread);
    (read, unread)
}

/// Reads a tree as this type. What does not fit is taken out of the tree and named, where it may be; then what is left is
/// read. The error names the field that may not be left out.
pub(crate) fn fit<T: DeserializeOwned>(
    value: &mut Value,
    may_drop: &dyn Fn(&Unread) -> bool,
    unread: &mut Vec<Unread>,
) -> Result<T, Unread> {
    // A time is put right many at once; a bound all the same, so that nothing can keep us here.
    let mut left = 2 * MOST;
    loop {
        let Some(read) = contained(|| T::deserialize(tracked::Tracked(value))) else {
            return Err(Unread::new(Path::default(), "reading it panicked"));
        };
        let Failed { path, why } = match read {
            Ok(read) => return Ok(read),
            Err(failed) => failed.in_order(),
        };
        let failed = Unread::new(path, &why);
        left -= 1;
        if left == 0 || unread.len() > MOST {
            return Err(failed);
        }
        if saturate(value, &failed.path) {
            continue;
        }
        if failed.path.0.is_empty() || !may_drop(&failed) {
            return Err(failed);
        }
        let is_deletion = failed.path == Path::of(&["metadata", "deletionTimestamp"])
            || failed.path == Path::of(&["deletionTimestamp"]);
        let found = failed.path.find(value).filter(|found| is_deletion && **found != LONG_AGO);
        if let Some(found) = found {
            *found = LONG_AGO.into();
        } else if !failed.path.remove(value) {
            return Err(failed);
        }
        if !unread.contains(&failed) {
            unread.push(failed);
        }
    }
}

/// Puts a time beyond the calendar right, with all that stand under the same key. Tells whether the field was one.
fn saturate(value: &mut Value, path: &Path) -> bool {
    let Some(found) = path.find(value) else { return false };
    if !saturated(found) {
        return false;
    }
    if let Some(Step::Key(key)) = path.0.last() {
        saturate_all(value, key);
    }
    true
}

fn saturate_all(value: &mut Value, key: &str) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if name == key {
                    saturated(member);
                }
                saturate_all(member, key);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| saturate_all(item, key)),
        _ => {}
    }
}

fn saturated(value: &mut Value) -> bool {
    let Value::String(text) = &*value else { return false };
    if text.parse::<jiff::Timestamp>().is_ok() {
        return false;
    }
    let Some(time) = time::saturating(text) else { return false };
    *value = time.to_string().into();
    true
}

/// Does something whose panic must not reach further than one object.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests;
