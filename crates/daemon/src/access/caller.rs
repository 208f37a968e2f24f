//! The authenticated originator of a request.

use super::secret::same;
use api::Secret;
use api::v1::{Login, Role};

/// How a caller was authenticated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Credential {
    /// Unauthenticated.
    None,
    /// By the kernel (socket peer credentials), or access open to everybody.
    Given,
    /// By the token with this identifier.
    Token(String),
    /// By the session whose cookie has this hash.
    Session(String),
}

/// The originator of a request, and its rights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Name of the token, `uid N`, or `nobody`.
    pub who: String,
    /// Origin: an address, or `socket`.
    pub from: String,
    /// Role; without one only public operations are permitted.
    pub role: Option<Role>,
    /// How the caller was authenticated.
    pub credential: Credential,
    /// CSRF token that changes in this session must carry.
    pub csrf: Option<Secret>,
    /// Expiry of the credential: seconds since 1970.
    pub expires_s: Option<u64>,
}

impl Caller {
    /// An unauthenticated caller.
    pub fn nobody(from: String) -> Self {
        Self {
            who: "nobody".to_owned(),
            from,
            role: None,
            credential: Credential::None,
            csrf: None,
            expires_s: None,
        }
    }

    /// A user of the Unix socket, with all rights.
    pub fn user(uid: u32) -> Self {
        Self {
            who: format!("uid {uid}"),
            role: Some(Role::Admin),
            credential: Credential::Given,
            ..Self::nobody("socket".to_owned())
        }
    }

    /// An unauthenticated reader of the public metrics.
    pub fn scraper() -> Self {
        Self {
            role: Some(Role::Viewer),
            credential: Credential::Given,
            ..Self::nobody("metrics".to_owned())
        }
    }

    /// Whether the caller is a user of the Unix socket, and so an administrator of this host.
    pub fn is_local_admin(&self) -> bool {
        self.credential == Credential::Given && self.role == Some(Role::Admin)
    }

    /// Whether a change carries the session's CSRF token.
    pub fn has_csrf(&self, shown: &str) -> bool {
        let known = self.csrf.as_ref().map(Secret::expose);
        known.is_some_and(|known| same(known, shown))
    }

    /// The API representation.
    pub fn login(&self) -> Login {
        Login {
            who: self.who.clone(),
            role: self.role.unwrap_or(Role::Viewer),
            csrf: self.csrf.clone(),
            expires_s: self.expires_s,
        }
    }
}
