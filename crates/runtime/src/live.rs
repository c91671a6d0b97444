//! Objects as the server has them, for kinds that are read too seldom to be followed by a cache.

use kruise_core::object::{ObjectKey, Resource};
use kube::{api::GetParams, core::Request};
use serde::de::DeserializeOwned;

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
