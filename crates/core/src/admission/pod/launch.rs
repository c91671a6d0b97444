//! The start order of the containers of new pods.

use serde_json::Value;

use super::PodContext;
use crate::launch_priority;

/// Puts containers behind their barrier where the pod asks for an order.
pub(super) fn order(pod: &mut Value, cx: &PodContext<'_>) -> Result<(), String> {
    launch_priority::mutate(pod, cx.context.seed).map(drop).map_err(|error| error.to_string())
}
