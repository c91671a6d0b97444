//! HTTP answers.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use http::{HeaderMap, Response, StatusCode};

use super::accept::{self, Encoding};
use crate::body::ApiBody;
use crate::discovery::GIT_VERSION;
use crate::protobuf;
use crate::status::Status;

/// A failure (or a plain success) in the form that the client reads.
pub(super) fn status(headers: &HeaderMap, status: &Status) -> Response<ApiBody> {
    let code = StatusCode::from_u16(if status.code == 0 { 200 } else { status.code });
    let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let bytes = Bytes::from(status.to_json());
    let written = encoded(code, bytes.clone(), accept::of_status(headers));
    let mut response = written.unwrap_or_else(|_| json(code, bytes));
    if let Some(seconds) = status.details.as_ref().map(|details| details.retry_after_seconds)
        && seconds > 0
        && let Ok(value) = HeaderValue::from_str(&seconds.to_string())
    {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

/// JSON bytes.
pub(super) fn json(code: StatusCode, bytes: impl Into<Bytes>) -> Response<ApiBody> {
    typed(code, "application/json", ApiBody::full(bytes))
}

/// JSON bytes in the encoding that was agreed on.
pub(super) fn encoded(
    code: StatusCode,
    bytes: Bytes,
    encoding: Encoding,
) -> Result<Response<ApiBody>, Status> {
    match encoding {
        Encoding::Json => Ok(json(code, bytes)),
        Encoding::Yaml => {
            let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(Status::internal)?;
            let text = serde_saphyr::to_string(&value).map_err(Status::internal)?;
            Ok(typed(code, "application/yaml", ApiBody::full(text)))
        }
        Encoding::Protobuf => {
            let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(Status::internal)?;
            let bytes = protobuf::encode(&value).map_err(Status::internal)?;
            Ok(typed(code, protobuf::CONTENT_TYPE, ApiBody::full(bytes)))
        }
    }
}

/// A body of some type.
pub(super) fn typed(code: StatusCode, content_type: &'static str, body: ApiBody) -> Response<ApiBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The form of the second version of OpenAPI in protobuf.
const OPEN_API_V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// A document of the second version of OpenAPI that names this server and no kinds.
pub(super) fn open_api_v2(headers: &HeaderMap) -> Response<ApiBody> {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (title, version) = ("Kubernetes", GIT_VERSION);
    if !accepted.contains("proto-openapi.spec.v2") {
        let info = serde_json::json!({"title": title, "version": version});
        let document = serde_json::json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}});
        return json(StatusCode::OK, document.to_string());
    }
    // Short texts and empty messages: a tag, a length, the bytes.
    let field = |tag: u8, bytes: &[u8]| [&[tag, bytes.len().try_into().unwrap_or(u8::MAX)], bytes].concat();
    let info = [field(0x0a, title.as_bytes()), field(0x12, version.as_bytes())].concat();
    let document = [field(0x0a, b"2.0"), field(0x12, &info), field(0x42, b""), field(0x4a, b"")].concat();
    typed(StatusCode::OK, OPEN_API_V2, ApiBody::full(document))
}

/// Adds warnings as headers: `299 - "text"`.
pub(super) fn warn(response: &mut Response<ApiBody>, warnings: &[String]) {
    for text in warnings {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
}
