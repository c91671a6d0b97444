//! Objects as the server has them, for kinds that are read too seldom to be followed by a cache. They are read as far as
//! they can be read, as in caches.

use kruise_core::object::{ObjectKey, Resource};
use kube::{
    api::{GetParams, ListParams},
    core::Request,
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};

use crate::{
    cache::Plain,
    decode::{self, Raw, Unread},
};

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// An object, if it is there.
pub async fn get<T: DeserializeOwned>(
    client: &kube::Client,
    resource: Resource,
    key: &ObjectKey,
) -> Result<Option<T>, kube::Error> {
    let request = Request::new(resource.path(&key.namespace)).get(&key.name, &GetParams::default());
    match client.request_text(request.map_err(kube::Error::BuildRequest)?).await {
        Ok(text) => match decode::lenient(&text) {
            (Ok(object), _) => Ok(Some(object)),
            (Err(unread), _) => Err(unreadable(&unread)),
        },
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn unreadable(unread: &Unread) -> kube::Error {
    kube::Error::SerdeError(serde_json::Error::custom(unread))
}

/// One of many: nothing where it cannot be read at all.
struct Item<T>(Option<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (read, _) = decode::lenient(&Raw::deserialize(deserializer)?.0);
        if let Err(unread) = &read {
            tracing::warn!(%unread, "left out an object of a list");
        }
        Ok(Self(read.ok()))
    }
}

/// All objects in a namespace (or of the cluster, without one), in pages that a server likes to give. Nothing where the
/// server does not have the kind.
pub async fn list<T: DeserializeOwned>(
    client: &kube::Client,
    resource: Resource,
    namespace: &str,
) -> Result<Option<Vec<T>>, kube::Error> {
    let mut found = Vec::new();
    each(client, resource, namespace, |object| found.push(object))
        .await
        .map(|is_there| is_there.then_some(found))
}

/// The same, one by one. Tells whether the server has the kind.
pub async fn each<T: DeserializeOwned>(
    client: &kube::Client,
    resource: Resource,
    namespace: &str,
    take: impl FnMut(T),
) -> Result<bool, kube::Error> {
    let path = match namespace {
        "" => Resource { namespaced: false, ..resource }.path(""),
        namespace => resource.path(namespace),
    };
    pages(client, &path, "", Request::list, take).await
}

/// The same at a path, for kinds that are known only at run time. A kind that is not there is an error.
pub async fn each_at<T: DeserializeOwned>(
    client: &kube::Client,
    path: &str,
    take: impl FnMut(T),
) -> Result<(), kube::Error> {
    found_at(path, pages(client, path, "", Request::list, take).await)
}

/// What every object has, of all objects of a kind in the cluster. The rest of them is not even sent.
pub async fn each_metadata(
    client: &kube::Client,
    resource: Resource,
    take: impl FnMut(Plain),
) -> Result<bool, kube::Error> {
    let path = Resource { namespaced: false, ..resource }.path("");
    pages(client, &path, "", Request::list_metadata, take).await
}

/// The same at a path, of the objects that a field selector chooses. A kind that is not there is an error.
pub async fn each_metadata_at(
    client: &kube::Client,
    path: &str,
    fields: &str,
    take: impl FnMut(Plain),
) -> Result<(), kube::Error> {
    found_at(path, pages(client, path, fields, Request::list_metadata, take).await)
}

fn found_at(path: &str, answer: Result<bool, kube::Error>) -> Result<(), kube::Error> {
    match answer {
        Ok(true) => Ok(()),
        Ok(false) => Err(kube::Error::Service(format!("the server has nothing at {path}").into())),
        Err(error) => Err(error),
    }
}

async fn pages<T: DeserializeOwned>(
    client: &kube::Client,
    path: &str,
    fields: &str,
    ask: impl Fn(&Request, &ListParams) -> Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    mut take: impl FnMut(T),
) -> Result<bool, kube::Error> {
    #[derive(Deserialize)]
    #[serde(bound = "T: DeserializeOwned")]
    struct Page<T> {
        #[serde(default)]
        metadata: Place,
        items: Option<Vec<Item<T>>>,
    }
    #[derive(Default, Deserialize)]
    struct Place {
        #[serde(default, rename = "continue")]
        next: String,
    }
    let mut params = ListParams::default().limit(PAGE);
    if !fields.is_empty() {
        params = params.fields(fields);
    }
    loop {
        let request = ask(&Request::new(path), &params);
        let page: Page<T> = match client.request(request.map_err(kube::Error::BuildRequest)?).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(false),
            Err(error) => return Err(error),
        };
        page.items.into_iter().flatten().filter_map(|Item(object)| object).for_each(&mut take);
        if page.metadata.next.is_empty() {
            return Ok(true);
        }
        params = params.continue_token(&page.metadata.next);
    }
}
