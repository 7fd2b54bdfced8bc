//! Answers as responses.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::json;

use super::status;
use crate::answers::{Problem, Reply};

/// The response of an answer.
pub(super) fn reply(reply: Reply) -> Response {
    match reply {
        Reply::Json(value) => made(200, "application/json", Body::from(value.to_string())),
        Reply::Bytes(kind, bytes) => made(200, kind, Body::from(bytes)),
        Reply::Static(kind, bytes) => made(200, kind, Body::from(bytes)),
        Reply::Nothing => made(204, "", Body::empty()),
        Reply::Attachment { kind, name, file } => {
            let mut response = made(200, kind, super::assets::stream(file));
            let disposition = format!("attachment; filename=\"{}\"", plain(&name));
            if let Ok(value) = HeaderValue::from_str(&disposition) {
                response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
            }
            response
        }
    }
}

/// The response of a refusal.
pub(super) fn problem(problem: &Problem) -> Response {
    made(problem.status, "application/json", Body::from(json!({"error": problem.text}).to_string()))
}

fn made(code: u16, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status(code);
    if !kind.is_empty() {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}

/// A name for a file that a header can carry.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._- ".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attachments_cannot_end_the_header() {
        assert_eq!(plain("a\"b\r\nc/ü.json"), "a_b__c__.json");
    }
}
