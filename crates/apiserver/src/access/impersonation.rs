//! Asking in somebody else's name.

use std::collections::BTreeMap;

use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use super::{ANONYMOUS, AUTHENTICATED, Question, UNAUTHENTICATED, What};
use crate::admission::User;
use crate::rest::percent_decode;
use crate::selector::syntax;
use crate::server::ApiServer;
use crate::status::Status;

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// Whom a request wants to be: nobody else, mostly.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    user: String,
    groups: Vec<String>,
    uid: String,
    extra: BTreeMap<String, Vec<String>>,
}

fn wanted(headers: &HeaderMap) -> Option<Wanted> {
    if !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return None;
    }
    // Names need not be ASCII. A header that is there never counts as absent: the request would keep the rights that
    // its sender wanted to give up.
    let read = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(read).unwrap_or_default();
    let all = |name: &str| -> Vec<String> { headers.get_all(name).iter().map(read).collect() };
    let extra = headers.keys().filter_map(|name| {
        let key = name.as_str().strip_prefix(EXTRA)?;
        Some((percent_decode(key, false), all(name.as_str())))
    });
    Some(Wanted { user: first(USER), groups: all(GROUP), uid: first(UID), extra: extra.collect() })
}

/// The user that a request is from, if it wants to be another one. Refuses those who may not.
pub(super) fn user(server: &ApiServer, head: &Parts) -> Result<Option<User>, Status> {
    let Some(wanted) = wanted(&head.headers) else { return Ok(None) };
    let Wanted { user, groups, uid, extra } = &wanted;
    if user.is_empty() {
        if groups.is_empty() && uid.is_empty() && extra.is_empty() {
            return Ok(None);
        }
        return Err(Status::bad_request(format!("requested {} without impersonating a user", told(&wanted))));
    }
    let asking = head.extensions.get::<User>().cloned().unwrap_or_default();
    let check = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let what = What::Resource { group, resource, subresource, namespace, name };
        server.check(&Question { user: &asking, verb: "impersonate", what })
    };
    let mut settled = match account(user) {
        Some((namespace, name)) => {
            check("", "serviceaccounts", "", namespace, name)?;
            let mut settled = User::service_account(namespace, name);
            settled.groups.pop();
            settled
        }
        None => {
            check("", "users", "", "", user)?;
            User { name: user.clone(), groups: Vec::new(), ..User::anonymous() }
        }
    };
    for group in groups {
        check("", "groups", "", "", group)?;
    }
    for (key, values) in extra {
        for value in values {
            check("authentication.k8s.io", "userextras", key, "", value)?;
        }
    }
    if !uid.is_empty() {
        check("authentication.k8s.io", "uids", "", "", uid)?;
    }
    if !groups.is_empty() {
        settled.groups.clone_from(groups);
    }
    let is_in = |group: &str| settled.groups.iter().any(|own| own == group);
    if user == ANONYMOUS {
        if !is_in(UNAUTHENTICATED) {
            settled.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !is_in(AUTHENTICATED) && !is_in(UNAUTHENTICATED) {
        settled.groups.push(AUTHENTICATED.to_owned());
    }
    settled.uid.clone_from(uid);
    settled.extra = wanted.extra;
    Ok(Some(settled))
}

/// Takes the wish to be somebody else off a request.
pub(super) fn forget(headers: &mut HeaderMap) {
    let names: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with(PREFIX)).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// Namespace and name of the service account that a user is. What cannot be one is a user like others.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let fits = syntax::dns_label(namespace).is_empty() && syntax::dns_subdomain(name).is_empty();
    fits.then_some((namespace, name))
}

/// What was asked for, as the real server prints its list of references.
fn told(wanted: &Wanted) -> String {
    let reference =
        |kind: &str, name: &str, version: &str, path: &str| format!("{{{kind}  {name}  {version}  {path}}}");
    let groups = wanted.groups.iter().map(|group| reference("Group", group, "", ""));
    let extra = wanted.extra.iter().flat_map(|(key, values)| {
        values.iter().map(move |value| reference("UserExtra", value, "authentication.k8s.io/v1", key))
    });
    let uid = Some(&wanted.uid).filter(|uid| !uid.is_empty());
    let uid = uid.map(|uid| reference("UID", uid, "authentication.k8s.io/v1", ""));
    let all: Vec<String> = groups.chain(extra).chain(uid).collect();
    format!("[{}]", all.join(" "))
}
