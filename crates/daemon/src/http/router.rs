//! The table of routes as a service.

use super::dispatch::{Answer, Arguments, dispatch};
use super::streams::{self, Ending};
use crate::Manager;
use api::v1::{Problem, ProblemCode};
use api::{Method, Operation, ROUTES, Route};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Query, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use std::collections::BTreeMap;
use std::sync::Arc;

type Map = BTreeMap<String, String>;

/// Longest body that is read, in bytes.
const BODY_MAX: usize = 1 << 20;

fn answer(status: u16, body: Vec<u8>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// A problem as it travels.
pub fn refuse(problem: &Problem) -> Response {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    answer(problem.code.status(), body)
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Delete => MethodFilter::DELETE,
    }
}

/// Carries out an operation. `body`: of a request that is a stream.
async fn carry_out(
    manager: Arc<Manager>,
    operation: Operation,
    with: Arguments,
    body: Body,
    ending: Ending,
) -> Response {
    let work = tokio::task::spawn_blocking(move || dispatch(&manager, operation, &with));
    match work.await {
        Ok(Ok(Answer::Json(body))) => answer(operation.route().status, body),
        Ok(Ok(Answer::Text(kind, text))) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        Ok(Ok(Answer::Send(sending))) => {
            let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
            (kind, streams::send(*sending, ending)).into_response()
        }
        Ok(Ok(Answer::Receive(receiving))) => {
            match streams::receive(*receiving, body, ending).await {
                Ok(received) => {
                    let body = serde_json::to_vec(&received).unwrap_or_default();
                    answer(operation.route().status, body)
                }
                Err(problem) => refuse(&problem),
            }
        }
        Ok(Ok(Answer::Nothing)) => StatusCode::from_u16(operation.route().status)
            .unwrap_or(StatusCode::NO_CONTENT)
            .into_response(),
        Ok(Err(problem)) => refuse(&problem),
        Err(error) => {
            tracing::error!("{operation:?} ended unexpectedly: {error}");
            refuse(&Problem::new(
                ProblemCode::Internal,
                "the daemon could not do this: its log says more",
            ))
        }
    }
}

fn arguments(
    path: Result<Path<Map>, PathRejection>,
    query: Result<Query<Map>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
    accept: String,
) -> Result<Arguments, Problem> {
    let unreadable = |what: &str, why: String| {
        let message = format!("the {what} of the request cannot be read: {why}");
        Problem::new(ProblemCode::Invalid, message)
    };
    let path = path.map_err(|error| unreadable("path", error.body_text()))?;
    let query = query.map_err(|error| unreadable("query", error.body_text()))?;
    let body = body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
            ProblemCode::TooLarge,
            format!("the request is longer than {BODY_MAX} bytes: make it shorter"),
        ),
        _ => unreadable("body", error.body_text()),
    })?;
    Ok(Arguments {
        path: path.0,
        query: query.0,
        body: body.into(),
        accept,
    })
}

/// What the client says that it reads.
fn accept(request: &Request) -> String {
    let values = request.headers().get_all(header::ACCEPT);
    let values = values.iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

/// Every route of the interface, asked of `manager`. Streams end when `ending` says so.
pub fn router(manager: &Arc<Manager>, ending: &Ending) -> Router {
    serving(ROUTES, manager, ending)
}

/// The figures alone.
pub fn metrics_router(manager: &Arc<Manager>, ending: &Ending) -> Router {
    let route = std::slice::from_ref(Operation::Metrics.route());
    serving(route, manager, ending)
}

fn serving(routes: &'static [Route], manager: &Arc<Manager>, ending: &Ending) -> Router {
    let mut router = Router::new();
    for route in routes {
        let manager = Arc::clone(manager);
        let ending = ending.clone();
        let operation = route.operation;
        let method = filter(route.method);
        let takes_stream = route.takes_stream();
        let handler = move |path: Result<Path<Map>, PathRejection>,
                            query: Result<Query<Map>, QueryRejection>,
                            request: Request| async move {
            let accept = accept(&request);
            let (body, stream) = match takes_stream {
                true => (Ok(Bytes::new()), request.into_body()),
                false => (Bytes::from_request(request, &()).await, Body::empty()),
            };
            match arguments(path, query, body, accept) {
                Ok(with) => carry_out(manager, operation, with, stream, ending).await,
                Err(problem) => refuse(&problem),
            }
        };
        router = router.route(route.path, on(method, handler));
    }
    router
        .fallback(|| async {
            refuse(&Problem::new(
                ProblemCode::NotFound,
                "there is no such address: docs/api/openapi.json lists those that are",
            ))
        })
        .method_not_allowed_fallback(|| async {
            refuse(&Problem::new(
                ProblemCode::MethodNotAllowed,
                "this address does not take this method: docs/api/openapi.json says which",
            ))
        })
        .layer(DefaultBodyLimit::max(BODY_MAX))
}
