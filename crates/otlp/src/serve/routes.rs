//! What is answered: `TraceService/Export` over gRPC, `POST /v1/traces` over HTTP with protobuf or JSON.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic::{Code, Status};

use super::Shared;
use super::answers::{Encoding, Trouble, response};
use super::bodies::{BODY_BYTES_MAX, unzipped, whole};
use crate::voice;

/// Where spans go over HTTP.
const TRACES: &str = "/v1/traces";

/// Who sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// It has shown a certificate of a known authority.
    pub(crate) has_certificate: bool,
}

/// Both protocols, behind the check of who sends.
pub(crate) fn routes(shared: &Arc<Shared>) -> Router {
    let service = TraceServiceServer::new(Service(Arc::clone(shared)))
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(BODY_BYTES_MAX);
    let http = Router::new().route(TRACES, post(post_traces)).with_state(Arc::clone(shared));
    Routes::new(service).into_axum_router().merge(http).layer(from_fn_with_state(Arc::clone(shared), guard))
}

/// Lets requests of known senders through, when their bodies are there.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let encoding = Encoding::of(request.headers());
    let peer = request.extensions().get::<Peer>().copied();
    if let Err(why) = is_known(&shared, request.headers(), peer) {
        if let Some(peer) = peer {
            voice::unauthorized(&peer.address.to_string(), &why);
        }
        return Trouble { code: Code::Unauthenticated, why }.answer(encoding);
    }
    if encoding != Encoding::Grpc && request.uri().path() != TRACES {
        // The router for gRPC would answer that all is well, as gRPC does.
        let why = format!("only {TRACES} is taken: spans, not logs or metrics");
        return Trouble { code: Code::Unimplemented, why }.answer_as(StatusCode::NOT_FOUND, encoding);
    }
    let (head, body) = request.into_parts();
    match shared.bodies.gather(body).await {
        // The room is given back when the request is answered.
        Ok((bytes, _room)) => match shared.bodies.turn().await {
            Ok(_turn) => next.run(Request::from_parts(head, whole(bytes))).await,
            Err(refused) => Trouble::from(refused).answer(encoding),
        },
        Err(refused) => Trouble::from(refused).answer(encoding),
    }
}

/// Whether a sender has shown what it must: a certificate or a token.
fn is_known(shared: &Shared, headers: &HeaderMap, peer: Option<Peer>) -> Result<(), String> {
    let mut gate = shared.gate.lock().unwrap_or_else(PoisonError::into_inner);
    if !gate.wants_token() || peer.is_some_and(|peer| peer.has_certificate) {
        return Ok(());
    }
    let shown = headers.get(AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
    let token = match shown.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
        _ => &[],
    };
    gate.check(token)
}

/// Stores a request.
async fn export(shared: &Shared, request: ExportTraceServiceRequest) -> Result<ExportTraceServiceResponse, Trouble> {
    let made = shared.store.store(request.resource_spans).await;
    let made = made.map_err(|unavailable| Trouble { code: Code::Unavailable, why: unavailable.0.to_owned() })?;
    let partial_success = (made.refused > 0)
        .then_some(ExportTracePartialSuccess { rejected_spans: made.refused, error_message: made.why });
    Ok(ExportTraceServiceResponse { partial_success })
}

/// gRPC.
struct Service(Arc<Shared>);

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, Status> {
        export(&self.0, request.into_inner()).await.map(tonic::Response::new).map_err(Trouble::status)
    }
}

/// HTTP.
async fn post_traces(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: axum::body::Bytes) -> Response {
    let encoding = Encoding::of(&headers);
    let wrong = |why: String| Trouble { code: Code::InvalidArgument, why };
    let decode = async {
        let zipped = headers.get(CONTENT_ENCODING).map(|value| value.as_bytes());
        let unzipped = match zipped {
            None | Some(b"identity") => None,
            Some(b"gzip") => Some(unzipped(&body)?),
            Some(_) => return Err(wrong("the content's encoding is neither gzip nor identity".to_owned())),
        };
        let bytes = unzipped.as_deref().unwrap_or(&body);
        match encoding {
            Encoding::Json => serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string())),
            _ => ExportTraceServiceRequest::decode(bytes).map_err(|error| wrong(error.to_string())),
        }
    };
    if encoding == Encoding::Other {
        return Trouble { code: Code::InvalidArgument, why: "the content is neither protobuf nor JSON".to_owned() }
            .answer_as(StatusCode::UNSUPPORTED_MEDIA_TYPE, Encoding::Json);
    }
    let answer = match decode.await {
        Ok(request) => export(&shared, request).await,
        Err(trouble) => Err(trouble),
    };
    match answer {
        Ok(answer) if encoding == Encoding::Json => {
            let text = serde_json::to_vec(&answer).unwrap_or_default();
            response(StatusCode::OK, "application/json", text)
        }
        Ok(answer) => response(StatusCode::OK, "application/x-protobuf", answer.encode_to_vec()),
        Err(trouble) => trouble.answer(encoding),
    }
}
