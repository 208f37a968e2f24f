//! API tokens: stored hashes and their verification. Pure: files and clocks are the caller's.

use super::secret::{random_hex, same, sha256_hex};
use api::v1::{Problem, ProblemCode, Role, Token, TokenCreate};
use serde::{Deserialize, Serialize};

/// Default, minimum and maximum lifetime of a token, in seconds.
const EXPIRES_DEFAULT_S: u64 = 90 * 86_400;
const EXPIRES_MIN_S: u64 = 60;
const EXPIRES_MAX_S: u64 = 3_660 * 86_400;
/// Maximum number of tokens.
const TOKENS_MAX: usize = 256;
/// Prefix of every token, so that leaked ones are recognised.
const MARK: &str = "convect_";

/// The stored form of a token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredToken {
    pub name: String,
    /// The public part of the token, which identifies it.
    pub id: String,
    /// SHA-256 of the whole token, in hex.
    pub hash: String,
    pub role: Role,
    pub created_s: u64,
    pub expires_s: u64,
}

impl StoredToken {
    /// The API representation.
    pub fn token(&self, now_s: u64) -> Token {
        Token {
            name: self.name.clone(),
            role: self.role,
            created_s: self.created_s,
            expires_s: self.expires_s,
            expired: self.expires_s <= now_s,
        }
    }
}

/// All tokens by name, as stored.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tokens {
    pub tokens: Vec<StoredToken>,
}

impl Tokens {
    /// Creates a token and returns its secret.
    ///
    /// # Errors
    /// When the name is taken, the limit is reached, the lifetime is out of range, or the system's
    /// random number generator fails.
    pub fn add(
        &mut self,
        request: &TokenCreate,
        now_s: u64,
    ) -> Result<(StoredToken, String), Problem> {
        let invalid = |message: String| Err(Problem::invalid(message));
        let lasts_s = request.expires_in_s.unwrap_or(EXPIRES_DEFAULT_S);
        if !(EXPIRES_MIN_S..=EXPIRES_MAX_S).contains(&lasts_s) {
            return invalid(format!(
                "a token's lifetime is {EXPIRES_MIN_S} to {EXPIRES_MAX_S} seconds, not {lasts_s}"
            ));
        }
        if self.tokens.iter().any(|known| known.name == request.name) {
            let message = format!(
                "token {} already exists: choose another name, or revoke it first",
                request.name
            );
            return Err(Problem::new(ProblemCode::Exists, message));
        }
        if self.tokens.len() >= TOKENS_MAX {
            let message =
                format!("the limit of {TOKENS_MAX} tokens is reached: revoke unused ones");
            return Err(Problem::new(ProblemCode::TooMany, message));
        }
        let random = |error: std::io::Error| Problem::new(ProblemCode::Io, error.to_string());
        let id = random_hex::<8>().map_err(random)?;
        let secret = format!("{MARK}{id}_{}", random_hex::<32>().map_err(random)?);
        let kept = StoredToken {
            name: request.name.clone(),
            hash: sha256_hex(&[secret.as_bytes()]),
            id,
            role: request.role,
            created_s: now_s,
            expires_s: now_s.saturating_add(lasts_s),
        };
        self.tokens.push(kept.clone());
        self.tokens.sort_by(|one, other| one.name.cmp(&other.name));
        Ok((kept, secret))
    }

    /// The token matching a secret, if any; it may have expired.
    pub fn shown(&self, shown: &str) -> Option<&StoredToken> {
        let id = shown.strip_prefix(MARK)?.split_once('_')?.0;
        let kept = self.tokens.iter().find(|known| known.id == id)?;
        same(&kept.hash, &sha256_hex(&[shown.as_bytes()])).then_some(kept)
    }

    /// The same, if it has not expired.
    pub fn check(&self, shown: &str, now_s: u64) -> Option<&StoredToken> {
        self.shown(shown).filter(|kept| now_s < kept.expires_s)
    }

    /// The token with this identifier, if it has not expired.
    pub fn by_id(&self, id: &str, now_s: u64) -> Option<&StoredToken> {
        let kept = self.tokens.iter().find(|known| known.id == id)?;
        (now_s < kept.expires_s).then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str, expires_in_s: Option<u64>) -> TokenCreate {
        TokenCreate {
            name: name.to_owned(),
            role: Role::Operator,
            expires_in_s,
        }
    }

    #[test]
    fn token_is_valid_until_it_expires() {
        let mut tokens = Tokens::default();
        let (kept, secret) = tokens.add(&request("ci", Some(100)), 1000).unwrap();
        assert_eq!(tokens.check(&secret, 1099), Some(&kept));
        assert_eq!(tokens.check(&secret, 1100), None);
        assert_eq!(tokens.shown(&secret), Some(&kept));
        let changed = secret.replace(&secret[secret.len() - 1..], "x");
        let swapped = format!("{MARK}{}_{}", kept.id, kept.hash);
        for bad in ["", MARK, &changed, &swapped, &secret[1..], &kept.hash] {
            assert_eq!(tokens.check(bad, 1000), None, "{bad}");
        }
        let written = serde_json::to_string(&tokens).unwrap();
        assert!(
            !written.contains(&secret[30..]),
            "the secret is stored: {written}"
        );
    }

    #[test]
    fn tokens_are_bounded_in_lifetime_and_number() {
        let mut tokens = Tokens::default();
        for (lasts, good) in [(59, false), (60, true), (EXPIRES_MAX_S + 1, false)] {
            let added = tokens.add(&request(&format!("t{lasts}"), Some(lasts)), 0);
            assert_eq!(added.is_ok(), good, "{lasts}");
        }
        let again = tokens.add(&request("t60", None), 0).unwrap_err();
        assert_eq!(again.code, ProblemCode::Exists);
        for number in 1..TOKENS_MAX {
            tokens
                .add(&request(&format!("n{number}"), None), 0)
                .unwrap();
        }
        let more = tokens.add(&request("more", None), 0).unwrap_err();
        assert_eq!(more.code, ProblemCode::TooMany);
    }
}
