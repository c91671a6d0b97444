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

/// Adds warnings as headers: `299 - "text"`. Letters beyond ASCII are sent as they are.
pub(super) fn warn(response: &mut Response<ApiBody>, warnings: &[String]) {
    for text in sendable(warnings) {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

/// The most letters that all warnings of an answer have, before they are cut.
const MOST_LETTERS: usize = 4 * 1024;
/// The most letters that a warning has which is cut.
const CUT_LETTERS: usize = 256;

/// Clients refuse answers with large headers: warnings that are too much together are cut, and the last left out. What has
/// control characters is no text for a header.
fn sendable(warnings: &[String]) -> Vec<&str> {
    let texts = warnings.iter().filter(|text| !text.is_empty() && !text.chars().any(char::is_control));
    let letters = |text: &str| text.chars().count();
    let all: usize = texts.clone().map(|text| letters(text)).sum();
    if all <= MOST_LETTERS {
        return texts.map(String::as_str).collect();
    }
    // Those up to the first that is too much are sent in any case.
    let (mut whole, mut sent, mut shown) = (0, 0, Vec::new());
    for text in texts {
        if whole > MOST_LETTERS && sent >= MOST_LETTERS {
            break;
        }
        whole += letters(text);
        let end = text.char_indices().nth(CUT_LETTERS).map_or(text.len(), |(at, _)| at);
        let cut = text.get(..end).unwrap_or(text);
        sent += letters(cut);
        shown.push(cut);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_sent_as_they_are_unless_they_are_too_much() {
        let send = |warnings: &[String]| {
            let mut response = json(StatusCode::OK, String::new());
            warn(&mut response, warnings);
            let all = response.headers().get_all(WARNING).iter();
            all.map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap()).collect::<Vec<_>>()
        };
        let few = ["caf\u{e9} \"\\".to_owned(), String::new(), "a\nb".to_owned(), "c".to_owned()];
        assert_eq!(send(&few), ["299 - \"caf\u{e9} \\\"\\\\\"", "299 - \"c\""]);
        let long = |letters: usize| "\u{e9}".repeat(letters);
        assert_eq!(send(&[long(4096)])[0].chars().count(), 4096 + 8);
        assert_eq!(
            send(&[long(4096), long(1)]).iter().map(|text| text.chars().count() - 8).collect::<Vec<_>>(),
            [256, 1]
        );
        let many: Vec<String> = vec![long(300); 100];
        assert_eq!(send(&many).len(), 16, "4096 letters are 16 times 256");
    }
}
