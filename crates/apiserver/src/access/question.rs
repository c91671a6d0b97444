//! What a request is about, read from its method and path before anything is looked up.

use http::{Method, Uri};

use super::{Question, What};
use crate::admission::User;
use crate::rest::{Query, percent_decode};

/// A request, as authorizers see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    verb: String,
    /// Whether it is about a resource.
    is_resource: bool,
    path: String,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

impl Asked {
    pub(crate) fn of(method: &Method, uri: &Uri) -> Self {
        let path = percent_decode(uri.path(), false);
        let parts: Vec<String> = uri
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| percent_decode(part, false))
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, parts) = match parts.as_slice() {
            ["api", _, rest @ ..] if !rest.is_empty() => ("", rest),
            ["apis", group, _, rest @ ..] if !rest.is_empty() => (*group, rest),
            _ => {
                let verb = method.as_str().to_ascii_lowercase();
                return Self { verb, path, ..Self::default() };
            }
        };
        let (namespace, parts) = match parts {
            ["namespaces", name] | ["namespaces", name, "status" | "finalize", ..] => (*name, parts),
            ["namespaces", name, rest @ ..] => (*name, rest),
            _ => ("", parts),
        };
        let part = |at: usize| parts.get(at).copied().unwrap_or_default().to_owned();
        let query = Query::parse(uri.query());
        let mut name = part(1);
        let verb = match *method {
            Method::POST => "create",
            Method::GET | Method::HEAD if name.is_empty() => {
                let verb = if query.flag("watch") { "watch" } else { "list" };
                name = exact_name(query.text("fieldSelector")).to_owned();
                verb
            }
            Method::GET | Method::HEAD => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if name.is_empty() => "deletecollection",
            Method::DELETE => "delete",
            _ => "",
        };
        Self {
            verb: verb.to_owned(),
            is_resource: true,
            path,
            group: group.to_owned(),
            resource: part(0),
            subresource: part(2),
            namespace: namespace.to_owned(),
            name,
        }
    }

    /// The same as a question of somebody.
    pub(crate) fn by<'a>(&'a self, user: &'a User) -> Question<'a> {
        let Self { verb, is_resource, path, group, resource, subresource, namespace, name } = self;
        let what = match is_resource {
            true => What::Resource { group, resource, subresource, namespace, name },
            false => What::Path(path),
        };
        Question { user, verb, what }
    }
}

/// The one name that a field selector leaves, if it does.
fn exact_name(selector: &str) -> &str {
    let term = |term: &'_ str| -> Option<usize> {
        let rest = term.strip_prefix("metadata.name=")?;
        Some(term.len() - rest.trim_start_matches('=').len())
    };
    let found = selector.split(',').find_map(|part| part.get(term(part)?..));
    found.filter(|name| !name.is_empty() && !name.contains(['/', '%'])).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `verb group|resource/sub|namespace|name` of a path.
    fn check(method: Method, path: &str, expected: &str) {
        let asked = Asked::of(&method, &path.parse().unwrap());
        let Asked { verb, is_resource, path: own, group, resource, subresource, namespace, name } = asked;
        let seen = match is_resource {
            true => format!("{verb} {group}|{resource}/{subresource}|{namespace}|{name}"),
            false => format!("{verb} {own}"),
        };
        assert_eq!(seen, expected, "{path}");
    }

    #[test]
    fn requests_are_read_as_authorizers_of_the_real_server_see_them() {
        check(Method::GET, "/healthz", "get /healthz");
        check(Method::GET, "/api/v1", "get /api/v1");
        check(Method::GET, "/apis/apps/v1", "get /apis/apps/v1");
        check(Method::POST, "/nonsense", "post /nonsense");
        check(Method::GET, "/api/v1/pods", "list |pods/||");
        check(Method::GET, "/api/v1/pods?watch=true", "watch |pods/||");
        check(Method::GET, "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db", "list |pods/|a|b");
        check(Method::GET, "/api/v1/namespaces/a", "get |namespaces/|a|a");
        check(Method::GET, "/api/v1/namespaces", "list |namespaces/||");
        check(Method::PUT, "/api/v1/namespaces/a/finalize", "update |namespaces/finalize|a|a");
        check(Method::POST, "/api/v1/namespaces/a/pods", "create |pods/|a|");
        check(Method::GET, "/api/v1/namespaces/a/pods/b/log", "get |pods/log|a|b");
        check(Method::DELETE, "/api/v1/namespaces/a/pods", "deletecollection |pods/|a|");
        check(Method::DELETE, "/apis/apps/v1/namespaces/a/deployments/d", "delete apps|deployments/|a|d");
        check(
            Method::PATCH,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            "patch rbac.authorization.k8s.io|clusterroles/||system:node",
        );
    }
}
