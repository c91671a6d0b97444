//! Why the API server refused a write, in one word for conditions.

use crate::podunavailablebudget::is_by_budget;

/// The reason for what a server said with this code.
pub fn reason(code: u16, message: &str) -> &'static str {
    let says = |text: &str| message.contains(text);
    if says("exceeded quota") {
        "QuotaExceeded"
    } else if says("failed calling webhook") {
        "WebhookUnavailable"
    } else if is_by_budget(message) {
        "BudgetRefuses"
    } else if says("admission webhook") && says("denied the request") {
        "WebhookRefuses"
    } else if says("is being terminated") {
        "NamespaceTerminating"
    } else if code == 409 && says("already exists") {
        "NameTaken"
    } else if code == 422 {
        "RevisionBroken"
    } else if code == 403 && says("cannot") {
        "PermissionMissing"
    } else if code == 429 || code >= 500 {
        "ServerUnavailable"
    } else {
        "Error"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_by_what_servers_say() {
        for (code, message, expected) in [
            (403, "pods \"web-3\" is forbidden: exceeded quota: few, requested: pods=1", "QuotaExceeded"),
            (500, "Internal error occurred: failed calling webhook \"a.b\": refused", "WebhookUnavailable"),
            (403, "admission webhook \"a.b\" denied the request: no", "WebhookRefuses"),
            (
                403,
                "unable to create new content in namespace x because it is being terminated",
                "NamespaceTerminating",
            ),
            (409, "pods \"web-3\" already exists", "NameTaken"),
            (422, "Pod \"web-3\" is invalid: spec.containers", "RevisionBroken"),
            (403, "pods is forbidden: User \"u\" cannot create resource \"pods\"", "PermissionMissing"),
            (503, "etcdserver: no leader", "ServerUnavailable"),
            (400, "what is that", "Error"),
        ] {
            assert_eq!(reason(code, message), expected, "{message}");
        }
    }
}
