//! What a path means.

use crate::rest::percent_decode;

/// A path, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// `/version`.
    Version,
    /// `/healthz`, `/livez` and `/readyz`, with what may follow.
    Health(String),
    /// `/api`: the core versions.
    CoreVersions,
    /// `/apis`: the groups.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`: the resources.
    Resources(String, String),
    /// `/openapi/...`, with what follows.
    OpenApi(String),
    /// `/openid/v1/jwks`.
    Keys,
    /// `/.well-known/openid-configuration`.
    Issuer,
    /// An object or a collection.
    Object(ObjectPath),
    /// Anything else.
    Unknown,
}

/// The path of an object or a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectPath {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) subresource: String,
    /// What follows the subresource, as for `proxy`.
    pub(super) rest: String,
}

pub(super) fn route(path: &str) -> Route {
    let parts: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(|part| percent_decode(part, false)).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", rest @ ..] => Route::Health(rest.join("/")),
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["api", version] => Route::Resources(String::new(), (*version).to_owned()),
        ["apis", group, version] => Route::Resources((*group).to_owned(), (*version).to_owned()),
        ["openid", "v1", "jwks"] => Route::Keys,
        [".well-known", "openid-configuration"] => Route::Issuer,
        ["openapi", rest @ ..] => Route::OpenApi(rest.join("/")),
        ["api", version, rest @ ..] => object("", version, rest),
        ["apis", group, version, rest @ ..] => object(group, version, rest),
        _ => Route::Unknown,
    }
}

fn object(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // The namespace itself, or one of its subresources.
        ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        _ => ("", rest),
    };
    let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
    Route::Object(ObjectPath {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: part(0),
        namespace: namespace.to_owned(),
        name: part(1),
        subresource: part(2),
        rest: rest.get(3..).unwrap_or_default().join("/"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: [&str; 6]) {
        let Route::Object(found) = route(path) else { panic!("{path} is no object") };
        let found =
            [found.group, found.version, found.namespace, found.plural, found.name, found.subresource];
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn paths_are_taken_apart_as_the_real_server_does() {
        check("/api/v1/pods", ["", "v1", "", "pods", "", ""]);
        check("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]);
        check("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""]);
        check("/api/v1/namespaces/a/status", ["", "v1", "", "namespaces", "a", "status"]);
        check("/api/v1/namespaces/a/pods", ["", "v1", "a", "pods", "", ""]);
        check("/api/v1/namespaces/a/pods/b/log", ["", "v1", "a", "pods", "b", "log"]);
        check(
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            ["apps", "v1", "a", "deployments", "d", "scale"],
        );
        check(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            ["rbac.authorization.k8s.io", "v1", "", "clusterroles", "system:node", ""],
        );
        assert_eq!(route("/apis/apps"), Route::Group("apps".into()));
        assert_eq!(route("/nonsense"), Route::Unknown);
    }
}
