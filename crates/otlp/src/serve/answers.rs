//! Error responses, in the encoding of the request.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use prost::Message;
use serde_json::json;
use tonic::{Code, Status};

use super::bodies::Refused;

/// The form of a request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Grpc,
    Protobuf,
    Json,
    Other,
}

impl Encoding {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let content = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match content.split(';').next().unwrap_or_default().trim() {
            "application/x-protobuf" | "application/protobuf" => Self::Protobuf,
            "application/json" => Self::Json,
            content if content.starts_with("application/grpc") => Self::Grpc,
            _ => Self::Other,
        }
    }
}

/// Why a request is not answered as it wishes.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) code: Code,
    pub(crate) why: String,
}

/// `google.rpc.Status`, which OTLP asks for in answers over HTTP.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

impl Trouble {
    pub(crate) fn status(self) -> Status {
        Status::new(self.code, self.why)
    }

    pub(crate) fn answer(self, encoding: Encoding) -> Response {
        let status = match self.code {
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::ResourceExhausted => StatusCode::PAYLOAD_TOO_LARGE,
            Code::DeadlineExceeded => StatusCode::REQUEST_TIMEOUT,
            _ => StatusCode::BAD_REQUEST,
        };
        self.answer_as(status, encoding)
    }

    pub(crate) fn answer_as(self, status: StatusCode, encoding: Encoding) -> Response {
        let code = self.code as i32;
        let mut answer = match encoding {
            Encoding::Grpc => return self.status().into_http(),
            Encoding::Protobuf => {
                let status_message = RpcStatus { code, message: self.why };
                response(status, "application/x-protobuf", status_message.encode_to_vec())
            }
            Encoding::Json | Encoding::Other => {
                let text = json!({"code": code, "message": self.why}).to_string();
                response(status, "application/json", text.into_bytes())
            }
        };
        if status == StatusCode::SERVICE_UNAVAILABLE {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}

/// An answer with a body.
pub(crate) fn response(status: StatusCode, content: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content));
    response
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        let (code, why) = match refused {
            Refused::TooLong => (Code::ResourceExhausted, "the request has more than 16 MiB"),
            Refused::NoRoom => (Code::Unavailable, "other requests use all memory"),
            Refused::TooSlow => (Code::DeadlineExceeded, "the request did not go on for 10 s"),
            Refused::Broken => (Code::InvalidArgument, "the request cannot be read"),
        };
        Self { code, why: why.to_owned() }
    }
}
