//! Validation of notification targets. Pure functions.

use super::mail::Route;
use super::tls::certificates;
use super::webhook::Place;
use api::Secret;
use api::v1::{TargetCreate, TargetTo};

/// Maximum length of a secret and of an address, in bytes.
const TEXT_MAX: usize = 4096;
/// Maximum size of certificates, in bytes.
const CA_MAX: usize = 256 << 10;

/// The mail route of an e-mail target.
pub fn route(create: &TargetCreate) -> Option<Route<'_>> {
    match &create.to {
        TargetTo::Webhook { .. } => None,
        TargetTo::Email {
            server,
            port,
            security,
            user,
            password,
            from,
            to,
        } => Some(Route {
            server,
            port: *port,
            security: *security,
            login: user.as_deref().zip(password.as_ref().map(Secret::expose)),
            from,
            to,
            ca: create.ca.as_deref(),
        }),
    }
}

/// Validates a target.
///
/// # Errors
/// A sentence that says what to do.
pub fn check(create: &TargetCreate) -> Result<(), String> {
    if let Some(ca) = &create.ca {
        if ca.len() > CA_MAX {
            return Err(format!("the certificates exceed {CA_MAX} bytes"));
        }
        certificates(ca).map_err(|why| format!("cannot use the certificates: {why}"))?;
    }
    let short = |text: &str| match text.len() <= TEXT_MAX {
        true => Ok(()),
        false => Err(format!("an address or a secret exceeds {TEXT_MAX} bytes")),
    };
    match &create.to {
        TargetTo::Webhook { url, secret } => {
            short(url.expose())?;
            let secret = secret.as_ref().map(Secret::expose);
            short(secret.unwrap_or_default())?;
            if secret == Some("") {
                return Err("the secret is empty: omit it, or provide one".to_owned());
            }
            Place::parse(url.expose()).map(drop)
        }
        TargetTo::Email {
            user,
            password,
            from,
            to,
            ..
        } => {
            let texts = [
                user.as_deref(),
                password.as_ref().map(Secret::expose),
                Some(from),
            ];
            texts.into_iter().flatten().try_for_each(short)?;
            to.iter().try_for_each(|to| short(to))?;
            if user.is_some() != password.is_some() {
                return Err("user and password must be given together".to_owned());
            }
            route(create).map_or(Ok(()), |route| route.check())
        }
    }
}
