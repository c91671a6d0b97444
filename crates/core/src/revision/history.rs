//! Which revisions are kept for going back.

use super::Revision;

/// The revisions that go: of those that nobody needs, the oldest above the limit. `revisions` are sorted from old to
/// new.
pub fn outdated<'a>(
    revisions: &[&'a Revision],
    limit: usize,
    is_live: &dyn Fn(&Revision) -> bool,
) -> Vec<&'a Revision> {
    let unused: Vec<&Revision> = revisions.iter().copied().filter(|revision| !is_live(revision)).collect();
    let surplus = unused.len().saturating_sub(limit);
    unused.into_iter().take(surplus).collect()
}

/// From old to new: by number, then by age, then by name.
pub fn sort(revisions: &mut [&Revision]) {
    revisions.sort_by(|left, right| {
        let key = |revision: &Revision| (revision.number, revision.metadata.creation_timestamp);
        key(left).cmp(&key(right)).then_with(|| left.name().cmp(right.name()))
    });
}
