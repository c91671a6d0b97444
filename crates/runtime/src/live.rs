//! Objects as the server has them, for kinds that are read too seldom to be followed by a cache.

use kruise_core::object::{ObjectKey, Resource};
use kube::{
    api::{GetParams, ListParams},
    core::Request,
};
use serde::{Deserialize, de::DeserializeOwned};

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// An object, if it is there.
pub async fn get<T: DeserializeOwned>(
    client: &kube::Client,
    resource: Resource,
    key: &ObjectKey,
) -> Result<Option<T>, kube::Error> {
    let request = Request::new(resource.path(&key.namespace)).get(&key.name, &GetParams::default());
    match client.request(request.map_err(kube::Error::BuildRequest)?).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// All objects of a namespace, in pages that a server likes to give. Nothing where the server does not have the kind.
pub async fn list<T: DeserializeOwned>(
    client: &kube::Client,
    resource: Resource,
    namespace: &str,
) -> Result<Option<Vec<T>>, kube::Error> {
    #[derive(Deserialize)]
    struct Page<T> {
        #[serde(default)]
        metadata: Place,
        items: Vec<T>,
    }
    #[derive(Default, Deserialize)]
    struct Place {
        #[serde(default, rename = "continue")]
        next: String,
    }
    let mut found = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let request = Request::new(resource.path(namespace)).list(&params);
        let page: Page<T> = match client.request(request.map_err(kube::Error::BuildRequest)?).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        found.extend(page.items);
        if page.metadata.next.is_empty() {
            return Ok(Some(found));
        }
        params = params.continue_token(&page.metadata.next);
    }
}
