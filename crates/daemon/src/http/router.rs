//! The table of routes as a service.

use super::dispatch::{Arguments, dispatch};
use crate::Manager;
use api::v1::{Problem, ProblemCode};
use api::{Method, Operation, ROUTES};
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query};
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

async fn carry_out(manager: Arc<Manager>, operation: Operation, with: Arguments) -> Response {
    let work = tokio::task::spawn_blocking(move || dispatch(&manager, operation, &with));
    match work.await {
        Ok(Ok(Some(body))) => answer(operation.route().status, body),
        Ok(Ok(None)) => StatusCode::from_u16(operation.route().status)
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
    })
}

/// Every route of the interface, asked of `manager`.
pub fn router(manager: &Arc<Manager>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let manager = Arc::clone(manager);
        let operation = route.operation;
        let handler = move |path: Result<Path<Map>, PathRejection>,
                            query: Result<Query<Map>, QueryRejection>,
                            body: Result<Bytes, BytesRejection>| async move {
            match arguments(path, query, body) {
                Ok(with) => carry_out(manager, operation, with).await,
                Err(problem) => refuse(&problem),
            }
        };
        router = router.route(route.path, on(filter(route.method), handler));
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
