//! Somebody who asks.

use super::secret::same;
use api::Secret;
use api::v1::{Login, Role};

/// Why it is believed who they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Credential {
    /// Nothing is believed.
    None,
    /// The kernel says so, or they may only do what anybody may.
    Given,
    /// The token with this identifier.
    Token(String),
    /// The session whose cookie has this hash.
    Session(String),
}

/// Somebody who asks, and what they may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// A token's name, `uid N`, or `nobody`.
    pub who: String,
    /// From where: an address, or `socket`.
    pub from: String,
    /// What they may do; nothing: only what anybody may.
    pub role: Option<Role>,
    /// Why that is believed.
    pub credential: Credential,
    /// What changes by this session have to bring.
    pub csrf: Option<Secret>,
    /// When what they showed counts no more: seconds since 1970.
    pub expires_s: Option<u64>,
}

impl Caller {
    /// Nobody in particular.
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

    /// A user of the Unix socket, who may do everything.
    pub fn user(uid: u32) -> Self {
        Self {
            who: format!("uid {uid}"),
            role: Some(Role::Admin),
            credential: Credential::Given,
            ..Self::nobody("socket".to_owned())
        }
    }

    /// Whoever reads the figures where anybody may.
    pub fn scraper() -> Self {
        Self {
            role: Some(Role::Viewer),
            credential: Credential::Given,
            ..Self::nobody("metrics".to_owned())
        }
    }

    /// Whether they are a user of the Unix socket, and so an administrator of this host.
    pub fn is_local_admin(&self) -> bool {
        self.credential == Credential::Given && self.role == Some(Role::Admin)
    }

    /// Whether a change brings what its session told.
    pub fn has_csrf(&self, shown: &str) -> bool {
        let known = self.csrf.as_ref().map(Secret::expose);
        known.is_some_and(|known| same(known, shown))
    }

    /// As the interface tells it.
    pub fn login(&self) -> Login {
        Login {
            who: self.who.clone(),
            role: self.role.unwrap_or(Role::Viewer),
            csrf: self.csrf.clone(),
            expires_s: self.expires_s,
        }
    }
}
