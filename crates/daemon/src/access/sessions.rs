//! Browser sessions, kept in memory only: they end with the daemon.

use super::secret::{random_hex, sha256_hex};
use api::Secret;
use std::collections::BTreeMap;

/// Maximum lifetime and idle time of a session, in seconds.
const LASTS_S: u64 = 12 * 3600;
const IDLE_S: u64 = 3600;
/// Maximum number of sessions; beyond it the one idle for longest ends.
const SESSIONS_MAX: usize = 256;

/// A session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrowserSession {
    /// Identifier of the token that was used to log in.
    pub token: String,
    /// CSRF token that changes must carry.
    pub csrf: Secret,
    /// Expiry: seconds since 1970.
    pub expires_s: u64,
    used_s: u64,
}

/// Sessions by the hashes of their cookies.
#[derive(Default)]
pub struct Sessions(BTreeMap<String, BrowserSession>);

impl Sessions {
    /// Begins a session for a token valid until `token_expires_s`, and returns its cookie.
    ///
    /// # Errors
    /// When the system's random number generator fails.
    pub fn begin(
        &mut self,
        token: &str,
        token_expires_s: u64,
        now_s: u64,
    ) -> std::io::Result<(String, BrowserSession)> {
        self.tidy(now_s);
        if self.0.len() >= SESSIONS_MAX {
            let idle = self.0.iter().min_by_key(|(_, open)| open.used_s);
            if let Some(hash) = idle.map(|(hash, _)| hash.clone()) {
                self.0.remove(&hash);
            }
        }
        let cookie = random_hex::<32>()?;
        let open = BrowserSession {
            token: token.to_owned(),
            csrf: Secret::new(random_hex::<16>()?),
            expires_s: token_expires_s.min(now_s + LASTS_S),
            used_s: now_s,
        };
        self.0
            .insert(sha256_hex(&[cookie.as_bytes()]), open.clone());
        Ok((cookie, open))
    }

    fn tidy(&mut self, now_s: u64) {
        self.0
            .retain(|_, open| now_s < open.expires_s && now_s < open.used_s + IDLE_S);
    }

    /// The session of a cookie, with its hash; resets the idle time.
    pub fn by_cookie(&mut self, cookie: &str, now_s: u64) -> Option<(String, BrowserSession)> {
        let hash = sha256_hex(&[cookie.as_bytes()]);
        let open = self.by_hash(&hash, now_s)?;
        Some((hash, open))
    }

    /// The session with this hash; resets the idle time.
    pub fn by_hash(&mut self, hash: &str, now_s: u64) -> Option<BrowserSession> {
        self.tidy(now_s);
        let open = self.0.get_mut(hash)?;
        open.used_s = now_s;
        Some(open.clone())
    }

    /// Ends a session.
    pub fn end(&mut self, hash: &str) {
        self.0.remove(hash);
    }

    /// Ends all sessions of a token.
    pub fn end_of(&mut self, token: &str) {
        self.0.retain(|_, open| open.token != token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ends_when_idle_or_expired_or_with_its_token() {
        let mut sessions = Sessions::default();
        let (idle, _) = sessions.begin("a", u64::MAX, 0).unwrap();
        assert!(sessions.by_cookie(&idle, IDLE_S - 1).is_some());
        assert!(sessions.by_cookie(&idle, 2 * IDLE_S - 2).is_some());
        assert!(sessions.by_cookie(&idle, 3 * IDLE_S).is_none());
        let (short, open) = sessions.begin("a", 10, 0).unwrap();
        assert_eq!(open.expires_s, 10);
        assert!(sessions.by_cookie(&short, 9).is_some());
        assert!(sessions.by_cookie(&short, 10).is_none());
        let (old, open) = sessions.begin("a", u64::MAX, 0).unwrap();
        for now_s in (0..open.expires_s).step_by(1800) {
            assert!(sessions.by_cookie(&old, now_s).is_some(), "{now_s}");
        }
        assert!(sessions.by_cookie(&old, open.expires_s).is_none());
        let (revoked, _) = sessions.begin("a", u64::MAX, 0).unwrap();
        let (kept, _) = sessions.begin("b", u64::MAX, 0).unwrap();
        sessions.end_of("a");
        assert!(sessions.by_cookie(&revoked, 1).is_none());
        assert!(sessions.by_cookie(&kept, 1).is_some());
    }

    #[test]
    fn longest_idle_session_is_evicted() {
        let mut sessions = Sessions::default();
        let (first, _) = sessions.begin("a", u64::MAX, 0).unwrap();
        let (second, _) = sessions.begin("a", u64::MAX, 1).unwrap();
        for _ in 2..SESSIONS_MAX {
            sessions.begin("a", u64::MAX, 2).unwrap();
        }
        assert!(sessions.by_cookie(&first, 3).is_some());
        sessions.begin("a", u64::MAX, 4).unwrap();
        assert!(sessions.by_cookie(&first, 4).is_some());
        assert!(sessions.by_cookie(&second, 4).is_none());
        assert_eq!(sessions.0.len(), SESSIONS_MAX);
    }
}
