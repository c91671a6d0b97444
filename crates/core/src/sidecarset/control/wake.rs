//! Which sets look again when a pod changes.

use std::collections::BTreeSet;

use kruise_api::annotations::SIDECARSET_INJECTED_LIST;

use crate::{pod::Pod, sidecarset::record, text::Text};

/// The sets that a change of a pod wakes: those that it names before or after. Nothing when nothing changed that rules read.
pub fn wakes(before: Option<&Pod>, after: Option<&Pod>) -> BTreeSet<Text> {
    if let (Some(before), Some(after)) = (before, after)
        && is_same(before, after)
    {
        return BTreeSet::new();
    }
    let list = |pod: &Pod| pod.metadata.annotations.get(SIDECARSET_INJECTED_LIST).cloned();
    let lists: Vec<Text> = [before, after].into_iter().flatten().filter_map(list).collect();
    lists.iter().flat_map(|list| record::injected(list).map(Text::from)).collect()
}

fn is_same(before: &Pod, after: &Pod) -> bool {
    let (left, right) = (&before.metadata, &after.metadata);
    left.uid == right.uid
        && left.is_deleting() == right.is_deleting()
        && left.labels == right.labels
        && left.annotations == right.annotations
        && before.spec == after.spec
        && before.status == after.status
}
