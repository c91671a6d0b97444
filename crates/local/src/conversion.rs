//! Conversion between the versions of our kinds, as the webhook that the CRDs name, inside this process.

use std::convert::Infallible;
use std::future::Future;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kruise_api::convert::convert;
use serde_json::{Value, json};

/// The namespace of the Service that the CRDs name.
pub const NAMESPACE: &str = "kruise-system";
/// The name of that Service.
pub const SERVICE: &str = "kruise-webhook-service";

/// The web service behind it: answers `POST /convert` with a `ConversionReview`.
pub fn service() -> impl tower::Service<
    Request<Full<Bytes>>,
    Response = Response<Full<Bytes>>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send,
> + Clone
+ Send
+ 'static {
    tower::service_fn(|request: Request<Full<Bytes>>| async move { Ok(answer(request).await) })
}

async fn answer(request: Request<Full<Bytes>>) -> Response<Full<Bytes>> {
    if request.uri().path() != "/convert" {
        return response(StatusCode::NOT_FOUND, "404 page not found".to_owned());
    }
    let Ok(body) = request.into_body().collect().await;
    match serde_json::from_slice::<Value>(&body.to_bytes()) {
        Ok(review) => response(StatusCode::OK, reviewed(review).to_string()),
        Err(error) => response(StatusCode::BAD_REQUEST, format!("the body is no ConversionReview: {error}")),
    }
}

fn response(code: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    response
}

/// The review with its answer. All objects are converted, or none.
fn reviewed(mut review: Value) -> Value {
    let request = review.get_mut("request").map(Value::take).unwrap_or_default();
    let wanted = request.get("desiredAPIVersion").and_then(Value::as_str).unwrap_or_default();
    let objects = request.get("objects").and_then(Value::as_array).cloned().unwrap_or_default();
    let converted: Result<Vec<Value>, _> =
        objects.into_iter().map(|object| convert(object, wanted)).collect();
    let mut answer = json!({ "uid": request.get("uid") });
    match converted {
        Ok(objects) => {
            kruise_api::json::set(&mut answer, &["convertedObjects"], objects);
            kruise_api::json::set(&mut answer, &["result"], json!({ "status": "Success" }));
        }
        Err(error) => {
            let failed = json!({ "status": "Failed", "message": error.to_string() });
            kruise_api::json::set(&mut answer, &["result"], failed);
        }
    }
    json!({ "apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "response": answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(objects: Value) -> Value {
        reviewed(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": { "uid": "u-1", "desiredAPIVersion": "apps.kruise.io/v1beta1", "objects": objects },
        }))
    }

    #[test]
    fn objects_come_back_in_the_wanted_version() {
        let answer =
            review(json!([{ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "spec": {} }]));
        assert_eq!(answer["response"]["uid"], "u-1");
        assert_eq!(answer["response"]["result"]["status"], "Success");
        assert_eq!(answer["response"]["convertedObjects"][0]["apiVersion"], "apps.kruise.io/v1beta1");
    }

    #[test]
    fn an_unknown_kind_is_a_failure_with_a_reason() {
        let answer = review(json!([{ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "Nothing" }]));
        assert_eq!(answer["response"]["result"]["status"], "Failed");
        let message = answer["response"]["result"]["message"].as_str().unwrap();
        assert!(message.contains("Nothing"), "{message}");
        assert!(answer["response"].get("convertedObjects").is_none());
    }
}
