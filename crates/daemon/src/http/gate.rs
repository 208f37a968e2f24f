//! Who asks: what a connection and a request's headers say of that, and whether it suffices.

use crate::access::{Access, Caller, Credential};
use api::v1::{Problem, ProblemCode};
use api::{Least, Method};
use axum::http::{HeaderMap, header};
use std::net::IpAddr;

/// The header in which a browser's changes bring what the log-in told.
const CSRF: &str = "x-convect-csrf";

/// How a connection came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    /// By the Unix socket, from this user.
    Socket(u32),
    /// By the port that serves figures to anybody.
    Figures,
    /// By TLS, from this address.
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

/// What a browser is told to keep under a name.
pub fn set_cookie(name: &str, value: &str) -> String {
    format!("{name}={value}; Path=/; Secure; HttpOnly; SameSite=Strict")
}

/// What a browser is told when the session has ended.
pub fn forget_cookie(name: &str) -> String {
    set_cookie(name, "; Max-Age=0")
}

fn forbidden(message: String) -> Problem {
    Problem::new(ProblemCode::Forbidden, message)
}

/// Refuses what another site made a browser send.
fn check_origin(headers: &HeaderMap, origin_needed: bool) -> Result<(), Problem> {
    let own = text(headers, "host").map(|host| format!("https://{host}"));
    match text(headers, "origin") {
        None if !origin_needed && !headers.contains_key(header::ORIGIN) => Ok(()),
        Some(origin) if own.as_deref() == Some(origin) => Ok(()),
        _ => Err(forbidden(
            "this request does not come from this page: log in at the daemon's own address, or use a token \
             instead of a cookie"
                .to_owned(),
        )),
    }
}

fn named(access: &Access, from: IpAddr, headers: &HeaderMap) -> Result<Caller, Problem> {
    if let Some(authorization) = headers.get(header::AUTHORIZATION) {
        let shown = authorization.to_str().ok();
        let token = shown.and_then(|shown| shown.strip_prefix("Bearer "));
        return access.by_bearer(token.unwrap_or_default().trim(), from);
    }
    match cookie(access.cookie(), headers) {
        Some(cookie) => access.by_cookie(cookie, from),
        None => Err(Problem::new(
            ProblemCode::Unauthenticated,
            "this needs a token: send it as `Authorization: Bearer TOKEN`, or log in on the page; `convect \
             token create` makes one",
        )),
    }
}

/// Who asks for something that needs `least`.
///
/// # Errors
/// When nobody who may.
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
        Door::Network(from) => named(access, from, headers)?,
    };
    if matches!(caller.credential, Credential::Session(_)) && method != Method::Get {
        check_origin(headers, true)?;
        let csrf = text(headers, CSRF).unwrap_or_default();
        if !caller.has_csrf(csrf) {
            return Err(forbidden(format!(
                "a change by a browser's session brings what its log-in told as {CSRF}: load the page again"
            )));
        }
    }
    match least.role() {
        Some(needed) if caller.role.is_none_or(|role| role < needed) => {
            let needed = format!("{needed:?}").to_lowercase();
            Err(forbidden(format!(
                "{} may not do this: use a token with the role {needed}",
                caller.who
            )))
        }
        _ => Ok(caller),
    }
}
