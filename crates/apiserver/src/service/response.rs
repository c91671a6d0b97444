//! HTTP answers.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use http::{Response, StatusCode};

use super::accept::Encoding;
use crate::body::ApiBody;
use crate::status::Status;

/// A failure (or a plain success) as JSON.
pub(super) fn status(status: &Status) -> Response<ApiBody> {
    let code = StatusCode::from_u16(if status.code == 0 { 200 } else { status.code });
    let mut response = json(code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), status.to_json());
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

/// Adds warnings as headers: `299 - "text"`.
pub(super) fn warn(response: &mut Response<ApiBody>, warnings: &[String]) {
    for text in warnings {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
}
