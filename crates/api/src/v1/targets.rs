//! Notification targets (docs/events.md#notification-targets).

use super::Severity;
use crate::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

fn warning() -> Severity {
    Severity::Warning
}

/// Transport security of a connection to a mail server. `starttls`: STARTTLS required (RFC 3207);
/// `tls`: TLS from the start (RFC 8314); `plain`: no TLS, to this host only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MailSecurity {
    /// STARTTLS required (RFC 3207).
    #[default]
    Starttls,
    /// TLS from the start (RFC 8314).
    Tls,
    /// No TLS: to this host only.
    Plain,
}

/// Delivery method of a notification target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum TargetTo {
    /// A POST of JSON for each event.
    Webhook {
        /// `https://HOST[:PORT]/PATH`, or `http`.
        // The path is often a credential, so the URL is treated like the secret.
        #[schema(value_type = String)]
        url: Secret,
        /// Key for signing requests: `X-Convect-Signature: sha256=` and the HMAC-SHA256 of the body
        /// (RFC 2104) in hexadecimal digits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>)]
        secret: Option<Secret>,
    },
    /// A mail with the latest events.
    Email {
        /// Name or address of the mail server.
        server: String,
        /// Port of the mail server; by default 587, 465 or 25, depending on `security`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// Transport security.
        #[serde(default)]
        security: MailSecurity,
        /// User name for authentication; absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// Password for authentication.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>)]
        password: Option<Secret>,
        /// Sender address.
        from: String,
        /// Recipient addresses, 1 to 16.
        to: Vec<String>,
    },
}

/// A notification target to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetCreate {
    /// Name of the target, unique on this daemon; same syntax as a pool name.
    pub name: String,
    /// Minimum severity of events to send.
    #[serde(default = "warning")]
    pub severity: Severity,
    /// Delivery method.
    pub to: TargetTo,
    /// CA certificates to trust in addition to the system's, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

/// A notification target, without its secrets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Target {
    /// Name of the target.
    pub name: String,
    /// `webhook` or `email`.
    pub kind: String,
    /// Address, without secret parts.
    pub address: String,
    /// Minimum severity of events to send.
    pub severity: Severity,
    /// Webhooks are signed, or the daemon authenticates to the mail server.
    pub authenticated: bool,
    /// The target is defined in the configuration file, and can be deleted only there.
    pub configured: bool,
    /// Events delivered since the daemon was started.
    pub delivered: u64,
    /// Events dropped since then after repeated failures.
    pub lost: u64,
    /// Queued events.
    pub waiting: u64,
    /// Consecutive failed deliveries.
    pub failures: u32,
    /// Reason of the latest failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Notification targets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TargetList {
    /// Targets, sorted by name.
    pub items: Vec<Target>,
}
