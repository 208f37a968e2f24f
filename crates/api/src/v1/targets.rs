//! Who is told of events (docs/events.md).

use super::Severity;
use crate::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

fn warning() -> Severity {
    Severity::Warning
}

/// How a mail server is spoken to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MailSecurity {
    /// By TLS after STARTTLS (RFC 3207), or not at all.
    #[default]
    Starttls,
    /// By TLS from the beginning (RFC 8314).
    Tls,
    /// Without TLS: only on this host.
    Plain,
}

/// The way to a target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum TargetTo {
    /// A POST of JSON for each event.
    Webhook {
        /// `https://HOST[:PORT]/PATH`, or with `http`.
        // Its path is often what proves who sends, so it is shown no more than the secret.
        #[schema(value_type = String)]
        url: Secret,
        /// What each request is signed with: `X-Convect-Signature: sha256=` and the HMAC-SHA256 of its body (RFC
        /// 2104), in hexadecimal digits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>)]
        secret: Option<Secret>,
    },
    /// A mail for what happened of late.
    Email {
        /// The mail server's name or address.
        server: String,
        /// Its port; 587, 465 or 25 by its security when left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// How it is spoken to.
        #[serde(default)]
        security: MailSecurity,
        /// Who logs in there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// With which password.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>)]
        password: Option<Secret>,
        /// The sender's address.
        from: String,
        /// The receivers' addresses, 1 to 16.
        to: Vec<String>,
    },
}

/// A target to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetCreate {
    /// As a pool's name; unique in the daemon.
    pub name: String,
    /// It is told of events that matter at least so much.
    #[serde(default = "warning")]
    pub severity: Severity,
    /// The way to it.
    pub to: TargetTo,
    /// Certificates that it is trusted by besides the system's, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// A target, without its secrets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// `webhook` or `email`.
    pub kind: String,
    /// Where it is, as far as that is no secret.
    pub address: String,
    /// It is told of events that matter at least so much.
    pub severity: Severity,
    /// Webhooks are signed, or the mail server is logged in to.
    pub authenticated: bool,
    /// It stands in the configuration's file, and is deleted there.
    pub configured: bool,
    /// Events that were delivered since the daemon was started.
    pub delivered: u64,
    /// Events that were given up since then.
    pub lost: u64,
    /// Events that it is still to be told of.
    pub waiting: u64,
    /// Tries in a row that failed.
    pub failures: u32,
    /// Why the last one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Targets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TargetList {
    /// One entry a target, by name.
    pub items: Vec<Target>,
}
