//! The server: who may ask, what is asked, and how much at once.

mod assets;
mod body;
mod connections;
mod parameters;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use tokio::sync::Semaphore;

use crate::answers::{self, Problem, Reply, Work};
use crate::socket::Listening;
use crate::view::View;
pub(crate) use parameters::Parameters;

/// Longest SQL text.
const SQL_BYTES_MAX: usize = 1 << 20;

/// Answers that wait for a thread; one more is refused.
const WAITING_MAX: usize = 256;

/// What the page may load: its own files and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Answers from pyramids at once.
pub(crate) const QUICK: usize = 4;

/// What every request needs.
struct App {
    view: Arc<View>,
    listening: Arc<Listening>,
    token: String,
    /// A permit for each answer from a pyramid that is computed at the same time.
    quick: Arc<Semaphore>,
    /// A permit for each answer that may read all slices: the timeline does not wait for these.
    thorough: Arc<Semaphore>,
    /// A permit for each answer that is computed or waits.
    places: Arc<Semaphore>,
}

/// Answers until `end` is ready.
pub(crate) async fn serve(
    listening: Arc<Listening>,
    token: String,
    view: Arc<View>,
    end: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let bounded = connections::Bounded::new(&listening)?;
    let threads = view.options.threads.clamp(1, 64);
    let app = App {
        view,
        listening,
        token,
        quick: Arc::new(Semaphore::new(QUICK)),
        thorough: Arc::new(Semaphore::new(threads)),
        places: Arc::new(Semaphore::new(WAITING_MAX)),
    };
    let router = Router::new().fallback(handle).with_state(Arc::new(app));
    tokio::select! {
        served = async { axum::serve(bounded, router).await } => served,
        () = end => Ok(()),
    }
}

async fn handle(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut response = match answer(&app, request).await {
        Ok(reply) => body::reply(reply),
        Err(problem) => body::problem(&problem),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // The token is part of the address: no other server may learn it, and no proxy may keep an answer.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

/// The part of the path behind the token, where the request may be answered at all.
fn admitted<'a>(app: &App, request: &'a Request) -> Result<&'a str, Problem> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let is_ours = host.is_some_and(|host| app.listening.is_named(host));
    // A page of another site may have a name that leads here: its requests carry that name.
    if !is_ours || request.headers().get_all(header::HOST).iter().count() != 1 {
        return Err(Problem::new(403, "this server answers only under its own address"));
    }
    if request.headers().get(header::ORIGIN).is_some_and(|origin| !is_own_origin(app, origin)) {
        return Err(Problem::new(403, "this server answers only its own page"));
    }
    let path = request.uri().path().strip_prefix('/').unwrap_or_default();
    let (token, rest) = path.split_once('/').unwrap_or((path, ""));
    if !is_equal(token.as_bytes(), app.token.as_bytes()) {
        return Err(Problem::new(403, "the address lacks the token that `anytrace view` printed"));
    }
    if !path.contains('/') {
        return Err(Problem::new(404, "the address of the page ends in a slash"));
    }
    Ok(rest)
}

fn is_own_origin(app: &App, origin: &HeaderValue) -> bool {
    let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
    host.is_some_and(|host| app.listening.is_named(host))
}

/// Compares in a time that depends on the lengths only.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |differs, (one, other)| std::hint::black_box(differs | (one ^ other)));
    one.len() == other.len() && differs == 0
}

async fn answer(app: &Arc<App>, request: Request) -> Result<Reply, Problem> {
    let path = admitted(app, &request)?.to_owned();
    let method = request.method().clone();
    let Some(name) = path.strip_prefix("api/").map(str::to_owned) else {
        return match method {
            Method::GET | Method::HEAD => assets::file(&path, app.view.options.page_folder.as_deref()),
            _ => Err(Problem::new(405, "pages can only be read")),
        };
    };
    let parameters = Parameters::of(request.uri().query().unwrap_or_default())?;
    match (&method, name.as_str()) {
        (&Method::POST, "sql") => {
            let bytes = axum::body::to_bytes(request.into_body(), SQL_BYTES_MAX).await;
            let bytes = bytes.map_err(|_| Problem::new(413, "the statement is too long"))?;
            let sql = String::from_utf8(bytes.to_vec()).map_err(|_| Problem::new(400, "the statement is not UTF-8"))?;
            let _place = place(app)?;
            answers::sql::run(&app.view, sql).await
        }
        (&Method::GET, "tables") => {
            let _place = place(app)?;
            Ok(answers::sql::tables(&app.view))
        }
        (&Method::GET, "sql") => Err(Problem::new(405, "statements are sent by POST")),
        (&Method::GET, _) => compute(app, name, parameters).await,
        _ => Err(Problem::new(405, "this address can only be read")),
    }
}

/// A place among those who wait.
fn place(app: &App) -> Result<tokio::sync::OwnedSemaphorePermit, Problem> {
    let place = Arc::clone(&app.places).try_acquire_owned();
    place.map_err(|_| Problem::new(503, "too many requests at once"))
}

/// Sets the flag when nobody waits for the answer any more.
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Computes an answer on a thread of its own.
async fn compute(app: &Arc<App>, name: String, parameters: Parameters) -> Result<Reply, Problem> {
    let _place = place(app)?;
    let ended = || Problem::new(503, "the server ends");
    let is_quick = matches!(name.as_str(), "trace" | "names" | "tiles" | "arrows" | "counter" | "picture");
    let threads = if is_quick { &app.quick } else { &app.thorough };
    let permit = Arc::clone(threads).acquire_owned().await.map_err(|_| ended())?;
    let cancelled = Arc::new(AtomicBool::new(false));
    let _cancel = Cancel(Arc::clone(&cancelled));
    let view = Arc::clone(&app.view);
    let work = move || {
        let _permit = permit;
        answers::get(&Work::new(&view, &cancelled, &parameters)?, &name, &parameters)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(_) => Err(Problem::new(500, "the answer could not be computed")),
    }
}

/// The status of a number.
fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_equal_only_to_themselves() {
        assert!(is_equal(b"abc", b"abc") && is_equal(b"", b""));
        assert!(!is_equal(b"abc", b"abd") && !is_equal(b"abc", b"ab") && !is_equal(b"", b"a") && !is_equal(b"a", b""));
    }
}
