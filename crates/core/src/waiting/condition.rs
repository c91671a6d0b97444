//! The condition that says why an object waits, and since when.

use jiff::Timestamp;
use kruise_api::time::Time;

use super::{Reason, Waits};
use crate::conditions::{self, Fact};

/// The type of the condition.
pub const CONDITION: &str = "Waiting";
/// The reason while nothing waits.
const NOT_WAITING: &str = "NotWaiting";

/// Sets the condition. An object that never waited has none. Its time changes with the reason too, so that it says since
/// when.
pub fn set_condition<C: Fact>(conditions: &mut Vec<C>, waits: &Waits, now: Timestamp) {
    let before = conditions::get(conditions, CONDITION);
    let (status, reason) = match waits.main() {
        Some(main) => ("True", main.as_str()),
        None if before.is_none() => return,
        None => ("False", NOT_WAITING),
    };
    let before = before.filter(|before| before.status() == status && before.reason() == reason);
    let since = before.and_then(Fact::since).unwrap_or(Time(now));
    let condition = C::new(CONDITION, status, Some(reason), Some(&waits.message()), since);
    conditions::put(conditions, condition);
}

/// Whether nothing but the message of the condition would change.
pub fn is_only_text<C: Fact>(before: &[C], after: &[C]) -> bool {
    let key = |all: &[C]| {
        conditions::get(all, CONDITION).map(|one| (one.status().to_owned(), one.reason().to_owned()))
    };
    key(before) == key(after)
}

/// Whether the condition is new and only says what the user wants: then it is no reason for a write of its own, because taking
/// over a cluster writes nothing.
pub fn is_taken_over<C: Fact>(before: &[C], waits: &Waits) -> bool {
    conditions::get(before, CONDITION).is_none() && waits.main().is_some_and(Reason::is_wanted)
}
