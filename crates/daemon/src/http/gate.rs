//! Authentication and authorisation of requests, by connection and headers.

use crate::access::{Access, Caller, Credential};
use api::v1::{Problem, ProblemCode};
use api::{Least, Method};
use axum::http::{HeaderMap, header};
use std::net::IpAddr;

/// Header with the CSRF token of changes by browsers.
const CSRF: &str = "x-convect-csrf";

/// How a connection arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    /// Over the Unix socket, from this user.
    Socket(u32),
    /// Over the port of the public metrics.
    Figures,
    /// Over TLS, from this address.
    Network(IpAddr),
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn cookie<'a>(name: &str, headers: &'a HeaderMap) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter();
    let mut pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    pairs.find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Set-Cookie header of a new session.
pub fn set_cookie(name: &str, value: &str) -> String {
    format!("{name}={value}; Path=/; Secure; HttpOnly; SameSite=Strict")
}

/// Set-Cookie header that removes a session's cookie.
pub fn forget_cookie(name: &str) -> String {
    set_cookie(name, "; Max-Age=0")
}

fn forbidden(message: String) -> Problem {
    Problem::new(ProblemCode::Forbidden, message)
}

/// Rejects cross-site requests.
fn check_origin(headers: &HeaderMap, origin_needed: bool) -> Result<(), Problem> {
    let own = text(headers, "host").map(|host| format!("https://{host}"));
    match text(headers, "origin") {
        None if !origin_needed && !headers.contains_key(header::ORIGIN) => Ok(()),
        Some(origin) if own.as_deref() == Some(origin) => Ok(()),
        _ => Err(forbidden(
            "cross-origin request rejected: log in at the daemon's own address, or use a token \
             instead of a cookie"
                .to_owned(),
        )),
    }
}

fn authenticate(access: &Access, from: IpAddr, headers: &HeaderMap) -> Result<Caller, Problem> {
    if let Some(authorization) = headers.get(header::AUTHORIZATION) {
        let shown = authorization.to_str().ok();
        let token = shown.and_then(|shown| shown.strip_prefix("Bearer "));
        return access.by_bearer(token.unwrap_or_default().trim(), from);
    }
    match cookie(access.cookie(), headers) {
        Some(cookie) => access.by_cookie(cookie, from),
        None => Err(Problem::new(
            ProblemCode::Unauthenticated,
            "authentication required: send `Authorization: Bearer TOKEN`, or log in on the web \
             page; create a token with `convect token create`",
        )),
    }
}

/// Authenticates a request for an operation that requires the role `least`.
///
/// # Errors
/// When the caller is not authenticated or lacks the role.
pub fn admit(
    access: &Access,
    door: Door,
    (method, least): (Method, Least),
    headers: &HeaderMap,
) -> Result<Caller, Problem> {
    let caller = match door {
        Door::Socket(uid) => Caller::user(uid),
        Door::Figures => Caller::scraper(),
        Door::Network(from) if least == Least::Anyone => {
            check_origin(headers, false)?;
            Caller::nobody(from.to_string())
        }
        Door::Network(from) => authenticate(access, from, headers)?,
    };
    if matches!(caller.credential, Credential::Session(_)) && method != Method::Get {
        check_origin(headers, true)?;
        let csrf = text(headers, CSRF).unwrap_or_default();
        if !caller.has_csrf(csrf) {
            return Err(forbidden(format!(
                "changes in a browser session must carry the {CSRF} header of its log-in: reload \
                 the page"
            )));
        }
    }
    match least.role() {
        Some(needed) if caller.role.is_none_or(|role| role < needed) => {
            let needed = format!("{needed:?}").to_lowercase();
            Err(forbidden(format!(
                "{} lacks permission: use a token with the role {needed}",
                caller.who
            )))
        }
        _ => Ok(caller),
    }
}
