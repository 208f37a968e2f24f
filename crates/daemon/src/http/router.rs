//! The HTTP service built from the route table.

use super::conditions::{self, Turns};
use super::dispatch::{Answer, Arguments, dispatch};
use super::gate::{Door, admit};
use super::hub::Hub;
use super::keys::{Keys, StoredResponse, Ticket};
use super::once::{KeyOutcome, keep, keyed};
use super::scrapes::Scrapes;
use super::shares::Share;
use super::streams::{self, Ending, Upload, Work};
use super::subject::subject;
use super::workers::Workers;
use super::{events, page};
use crate::Manager;
use crate::access::{Caller, Credential};
use api::v1::{Problem, ProblemCode};
use api::{Least, Method, Operation, ROUTES, Route};
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Query, Request};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

type Map = BTreeMap<String, String>;

/// Header with the idempotency key (draft-ietf-httpapi-idempotency-key-header).
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Maximum size of a request body in bytes; and for unauthenticated callers.
const BODY_MAX: usize = 1 << 20;
const ANYONE_BODY_MAX: usize = 16 << 10;

/// Time limit for reading a request body that is not a stream.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A header's value, if present and valid.
fn header_text(request: &Request, name: &HeaderName) -> Result<Option<String>, Problem> {
    let Some(value) = request.headers().get(name) else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(Problem::invalid(format!(
            "the header {name} is not valid ASCII: correct it"
        ))),
    }
}

fn written(status: u16, body: Vec<u8>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// A successful JSON response, with the object's entity tag if it has one.
fn answer_json(operation: Operation, StoredResponse { body, tag }: StoredResponse) -> Response {
    let answered = written(operation.route().status, body);
    match tag {
        Some(tag) => ([(header::ETAG, tag)], answered).into_response(),
        None => answered,
    }
}

/// The response for a problem.
pub fn refuse(problem: &Problem) -> Response {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    written(problem.code.status(), body)
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Delete => MethodFilter::DELETE,
    }
}

/// State shared by the request handlers of all listeners.
#[derive(Clone)]
pub struct Served {
    manager: Arc<Manager>,
    hub: Arc<Hub>,
    turns: Arc<Turns>,
    keys: Arc<Keys>,
    workers: Arc<Workers>,
    scrapes: Arc<Scrapes>,
    ending: Ending,
}

impl Served {
    /// The state for `manager`. Streams stop when `ending` signals it.
    pub fn new(manager: &Arc<Manager>, ending: &Ending) -> Self {
        Self {
            manager: Arc::clone(manager),
            hub: Hub::new(manager),
            turns: Arc::default(),
            keys: Arc::default(),
            workers: Arc::default(),
            scrapes: Arc::new(Scrapes::new(manager)),
            ending: ending.clone(),
        }
    }
}

/// The audit entries of a change: when it is requested, and its outcome.
struct Noted {
    manager: Arc<Manager>,
    caller: Caller,
    operation: Operation,
    number: u64,
}

impl Noted {
    /// Writes the audit entry of a change before it is made; nothing for queries.
    fn begin(
        manager: &Arc<Manager>,
        caller: &Caller,
        operation: Operation,
        with: &Arguments,
    ) -> Result<Option<Self>, Problem> {
        if operation.route().method == Method::Get {
            return Ok(None);
        }
        let subject = subject(&with.path, &with.body);
        let name = format!("{operation:?}");
        let number = manager.access.asked(caller, &name, &subject)?;
        Ok(Some(Self {
            manager: Arc::clone(manager),
            caller: caller.clone(),
            operation,
            number,
        }))
    }

    fn end<T>(&self, result: &Result<T, Problem>) {
        let outcome = match result {
            Ok(_) => "done",
            Err(problem) => &problem.message,
        };
        let name = format!("{:?}", self.operation);
        let access = &self.manager.access;
        access.ended(self.number, &self.caller, &name, outcome);
    }

    /// Writes the outcome; a log-in is attributed to the caller it identified.
    fn answered(mut self, result: &Result<Answer, Problem>) {
        if let Ok(Answer::Cookie { who, .. }) = result {
            self.caller.who.clone_from(who);
        }
        self.end(result);
    }
}

/// Executes an operation on a worker thread, where it may block.
fn work(
    served: &Served,
    caller: &Caller,
    operation: Operation,
    with: &Arguments,
    ticket: Option<&Ticket>,
) -> Result<(Answer, Option<Noted>), Problem> {
    let manager = &served.manager;
    let _turn = served.turns.take(operation, with);
    let noted = Noted::begin(manager, caller, operation, with)?;
    let condition = || conditions::check(manager, operation, with);
    let result = dispatch(manager, caller, operation, with, &condition);
    if let (Some(ticket), Ok(done)) = (ticket, &result) {
        keep(ticket, done);
    }
    // The outcome of a stream is written when it ends.
    match (noted, result) {
        (noted, Ok(Answer::Receive(receiving))) => Ok((Answer::Receive(receiving), noted)),
        (noted, result) => {
            if let Some(noted) = noted {
                noted.answered(&result);
            }
            result.map(|answer| (answer, None))
        }
    }
}

/// Executes an operation. `upload`: the body of a request that is a stream.
async fn carry_out(
    served: Served,
    (door, caller): (Door, Caller),
    operation: Operation,
    with: Arguments,
    upload: Upload,
) -> Response {
    let ticket = match keyed(&served.keys, &caller, operation, &with).await {
        Ok(KeyOutcome::Again(answered)) => return answer_json(operation, answered),
        Ok(KeyOutcome::First(ticket)) => Some(ticket),
        Ok(KeyOutcome::Without) => None,
        Err(problem) => return refuse(&problem),
    };
    let done = match operation {
        // Returns without blocking; the metrics are gathered afterwards.
        Operation::Metrics => work(&served, &caller, operation, &with, None),
        _ => {
            let (asked, asking) = (served.clone(), caller.clone());
            let work = move || work(&asked, &asking, operation, &with, ticket.as_ref());
            let done = served.workers.run((door, &caller.who), work).await;
            done.unwrap_or_else(|error| {
                tracing::error!("{operation:?} ended unexpectedly: {error}");
                Err(Problem::new(
                    ProblemCode::Internal,
                    "internal error: see the daemon's log",
                ))
            })
        }
    };
    match done {
        Ok((answer, noted)) => {
            let answered = tell(served, (door, caller), operation, answer, (upload, noted)).await;
            answered.unwrap_or_else(|problem| refuse(&problem))
        }
        Err(problem) => {
            upload.leave();
            refuse(&problem)
        }
    }
}

/// Converts the outcome of an operation to a response, and runs the stream that is its request.
async fn tell(
    served: Served,
    (door, caller): (Door, Caller),
    operation: Operation,
    answer: Answer,
    (upload, noted): (Upload, Option<Noted>),
) -> Result<Response, Problem> {
    let status = operation.route().status;
    let Served {
        manager,
        hub,
        workers,
        scrapes,
        ending,
        ..
    } = served;
    let work = |who| Work { workers, door, who };
    Ok(match answer {
        Answer::Json(kept) => answer_json(operation, kept),
        Answer::Cookie { body, cookie, .. } => {
            let answered = written(status, body);
            ([(header::SET_COOKIE, cookie)], answered).into_response()
        }
        Answer::Live(wish, looks) => events::tell(&hub, (wish, looks), caller, manager, ending)?,
        Answer::Figures(format) => {
            let text = scrapes.text(format).await?;
            ([(header::CONTENT_TYPE, format.content_type())], text).into_response()
        }
        Answer::Send(sending) => {
            let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
            let body = streams::send(*sending, work(caller.who), ending);
            (kind, body).into_response()
        }
        Answer::Receive(receiving) => {
            let received = streams::receive(*receiving, work(caller.who), upload, ending).await;
            if let Some(noted) = noted {
                noted.end(&received);
            }
            written(status, serde_json::to_vec(&received?).unwrap_or_default())
        }
        Answer::Nothing => StatusCode::from_u16(status)
            .unwrap_or(StatusCode::NO_CONTENT)
            .into_response(),
    })
}

fn arguments(
    path: Result<Path<Map>, PathRejection>,
    query: Result<Query<Map>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
    headers: Headers,
    body_max: usize,
) -> Result<Arguments, Problem> {
    let unreadable = |what: &str, why: String| {
        let message = format!("cannot parse the {what} of the request: {why}");
        Problem::invalid(message)
    };
    let path = path.map_err(|error| unreadable("path", error.body_text()))?;
    let query = query.map_err(|error| unreadable("query", error.body_text()))?;
    let body = body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
            ProblemCode::TooLarge,
            format!("the request exceeds {body_max} bytes: make it smaller"),
        ),
        _ => unreadable("body", error.body_text()),
    })?;
    Ok(Arguments {
        path: path.0,
        query: query.0,
        body: body.into(),
        accept: headers.accept,
        if_match: headers.if_match?,
        key: headers.key?,
    })
}

/// Headers of a request that are not about authentication.
struct Headers {
    accept: String,
    if_match: Result<Option<String>, Problem>,
    key: Result<Option<String>, Problem>,
}

impl Headers {
    fn of(request: &Request) -> Self {
        Self {
            accept: accept(request),
            if_match: header_text(request, &header::IF_MATCH),
            key: header_text(request, &KEY),
        }
    }
}

/// The Accept headers.
fn accept(request: &Request) -> String {
    let values = request.headers().get_all(header::ACCEPT);
    let values = values.iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

/// The router with every route of the API.
pub fn router(served: &Served) -> Router {
    serving(ROUTES, served)
}

/// The router for callers over the network.
pub fn hardened(router: Router) -> Router {
    router.layer(axum::middleware::map_response(page::harden))
}

/// Authenticates the caller by the door of its connection.
fn caller(
    manager: &Manager,
    request: &Request,
    wanted: (Method, Least),
) -> Result<(Door, Caller), Problem> {
    // Every connection has a door; a request without one is refused.
    let Some(door) = request.extensions().get::<Door>() else {
        return Err(Problem::new(
            ProblemCode::Internal,
            "internal error: the request has no listener",
        ));
    };
    let caller = admit(&manager.access, *door, wanted, request.headers())?;
    let proven = !matches!(caller.credential, Credential::None) && *door != Door::Figures;
    if let Some(share) = request.extensions().get::<Share>().filter(|_| proven) {
        share.prove();
    }
    Ok((*door, caller))
}

/// Response for an unknown path or method; callers without access learn only that they have none.
async fn astray(
    manager: Arc<Manager>,
    request: Request,
    code: ProblemCode,
    message: &'static str,
) -> Response {
    let known = caller(&manager, &request, (Method::Get, Least::Viewer));
    refuse(&known.map_or_else(|problem| problem, |_| Problem::new(code, message)))
}

/// The router of the public metrics.
pub fn metrics_router(served: &Served) -> Router {
    serving(std::slice::from_ref(Operation::Metrics.route()), served)
}

/// Maximum size of a request body that is not a stream, in bytes.
const fn body_max(least: Least) -> usize {
    match least {
        Least::Anyone => ANYONE_BODY_MAX,
        _ => BODY_MAX,
    }
}

fn serving(routes: &'static [Route], served: &Served) -> Router {
    let mut router = Router::new();
    let manager = &served.manager;
    for route in routes {
        let served = served.clone();
        let wanted = (route.method, route.least);
        let operation = route.operation;
        let method = filter(route.method);
        let takes_stream = route.takes_stream();
        let handler = move |path: Result<Path<Map>, PathRejection>,
                            query: Result<Query<Map>, QueryRejection>,
                            request: Request| async move {
            let asking = match caller(&served.manager, &request, wanted) {
                Ok(asking) => asking,
                Err(problem) => return refuse(&problem),
            };
            let headers = Headers::of(&request);
            let (body, stream) = match takes_stream {
                true => (Ok(Bytes::new()), Upload::of(request)),
                false => {
                    let whole = Bytes::from_request(request, &());
                    let Ok(body) = tokio::time::timeout(BODY_TIME, whole).await else {
                        let text = format!(
                            "the request was not received within {BODY_TIME:?}: send it \
                             again"
                        );
                        return refuse(&Problem::invalid(text));
                    };
                    (body, Upload::empty())
                }
            };
            match arguments(path, query, body, headers, body_max(wanted.1)) {
                Ok(with) => carry_out(served, asking, operation, with, stream).await,
                Err(problem) => refuse(&problem),
            }
        };
        let limit = DefaultBodyLimit::max(body_max(route.least));
        router = router.route(route.path, on(method, handler).layer(limit));
    }
    let (absent, mismatched) = (Arc::clone(manager), Arc::clone(manager));
    router
        .fallback(move |request| {
            let message = "unknown path: see docs/api/openapi.json";
            astray(absent, request, ProblemCode::NotFound, message)
        })
        .method_not_allowed_fallback(move |request| {
            let message = "method not allowed for this path: see docs/api/openapi.json";
            astray(mismatched, request, ProblemCode::MethodNotAllowed, message)
        })
}
