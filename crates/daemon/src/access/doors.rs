//! Authentication: tokens, browser sessions, and their changes.

use super::attempts::{Attempts, Failures};
use super::audit::{Audit, Note};
use super::caller::{Caller, Credential};
use super::secret::random_hex;
use super::sessions::{BrowserSession, Sessions};
use super::tokens::{StoredToken, Tokens};
use crate::clock::now_s;
use crate::names::check_name;
use crate::state::{JsonStore, StateFiles};
use crate::sync::lock;
use api::Secret;
use api::v1::{self, Problem, ProblemCode};
use std::net::IpAddr;
use std::sync::{Mutex, OnceLock};

type Result<T> = std::result::Result<T, Problem>;

/// The file of tokens in the state folder, and its maximum size in bytes.
const FILE: &str = "tokens.json";
const FILE_MAX: u64 = 1 << 20;

/// Prefix of cookie names. Browsers accept cookies with it only over TLS, and send them only to
/// this host (RFC 6265bis, section 4.1.3.2).
const COOKIE: &str = "__Host-convect";
/// The file with the rest of the cookie's name in the state folder, and its maximum size in bytes.
const COOKIE_FILE: &str = "cookie";
const COOKIE_FILE_MAX: u64 = 64;

/// Tokens, sessions and audit log of one daemon. Locks are held briefly, for one lookup or write.
pub struct Access {
    files: StateFiles,
    store: JsonStore<Tokens>,
    /// Name of the session cookies.
    cookie: OnceLock<String>,
    tokens: Mutex<Tokens>,
    sessions: Mutex<Sessions>,
    attempts: Mutex<Attempts>,
    audit: Mutex<Audit>,
}

fn unauthenticated(message: &str) -> Problem {
    Problem::new(ProblemCode::Unauthenticated, message)
}

fn io_problem(what: &str, error: &std::io::Error) -> Problem {
    Problem::new(
        ProblemCode::Io,
        format!("{what}: {error}: check the state folder"),
    )
}

fn by_token(kept: &StoredToken, from: IpAddr) -> Caller {
    Caller {
        who: kept.name.clone(),
        role: Some(kept.role),
        credential: Credential::Token(kept.id.clone()),
        expires_s: Some(kept.expires_s),
        ..Caller::nobody(from.to_string())
    }
}

fn by_session(kept: &StoredToken, from: IpAddr, hash: String, open: &BrowserSession) -> Caller {
    Caller {
        credential: Credential::Session(hash),
        csrf: Some(open.csrf.clone()),
        expires_s: Some(open.expires_s),
        ..by_token(kept, from)
    }
}

impl Access {
    /// An instance that has not loaded the state folder yet: no credential is valid.
    pub fn new(files: &StateFiles) -> Self {
        Self {
            files: files.clone(),
            store: JsonStore::new(files, FILE, FILE_MAX, 0o600),
            cookie: OnceLock::new(),
            tokens: Mutex::default(),
            sessions: Mutex::default(),
            attempts: Mutex::default(),
            audit: Mutex::new(Audit::new(files)),
        }
    }

    /// Loads the tokens and the audit log. If the tokens cannot be read, none is valid.
    pub fn load(&self) {
        if let Some(tokens) = self.store.read() {
            *lock(&self.tokens) = tokens;
        }
        let _ = self.cookie.set(self.load_cookie());
        lock(&self.audit).load();
    }

    /// The name of this daemon's cookies, stable across restarts if it can be stored. Browsers
    /// share cookies between the ports of a host (RFC 6265, section 8.5): without distinct names,
    /// logging in to one daemon would end the sessions of another on the same host.
    fn load_cookie(&self) -> String {
        let kept = self.files.read(COOKIE_FILE, COOKIE_FILE_MAX, |text| {
            let word = String::from_utf8_lossy(text).trim().to_owned();
            let good = word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            good.then_some(word)
                .ok_or_else(|| "it is not a valid cookie name".to_owned())
        });
        let word = kept.map(Ok).unwrap_or_else(|| {
            let word = random_hex::<4>()?;
            // If this fails, browsers must log in again after a restart.
            let _ = self.files.write(COOKIE_FILE, word.as_bytes(), 0o600);
            Ok::<_, std::io::Error>(word)
        });
        match word {
            Ok(word) => format!("{COOKIE}-{word}"),
            Err(error) => {
                tracing::error!("cannot generate a unique cookie name: {error}");
                COOKIE.to_owned()
            }
        }
    }

    /// Name of the session cookies.
    pub fn cookie(&self) -> &str {
        self.cookie.get().map_or(COOKIE, String::as_str)
    }

    fn keep(&self, tokens: &Tokens) -> Result<()> {
        self.store.write_for_caller("the tokens", tokens)
    }

    /// Authenticates a bearer token. An invalid one counts as a failed attempt of its address.
    ///
    /// # Errors
    /// When it is invalid, revoked or expired.
    pub fn by_bearer(&self, shown: &str, from: IpAddr) -> Result<Caller> {
        let now_s = now_s();
        let tokens = lock(&self.tokens);
        if let Some(kept) = tokens.check(shown, now_s) {
            return Ok(by_token(kept, from));
        }
        // The name is revealed only to a caller that knows the secret.
        let what = match tokens.shown(shown) {
            Some(kept) => format!("token {} has expired", kept.name),
            None => "invalid or revoked token".to_owned(),
        };
        drop(tokens);
        self.may_try(from, now_s)?;
        lock(&self.attempts).failed(from, now_s);
        Err(unauthenticated(&format!(
            "{what}: ask an administrator for a new token (`convect token create`)"
        )))
    }

    /// Authenticates a session cookie.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn by_cookie(&self, cookie: &str, from: IpAddr) -> Result<Caller> {
        let now_s = now_s();
        let found = lock(&self.sessions).by_cookie(cookie, now_s);
        let caller = found.and_then(|(hash, open)| {
            let tokens = lock(&self.tokens);
            let kept = tokens.by_id(&open.token, now_s)?;
            Some(by_session(kept, from, hash, &open))
        });
        caller.ok_or_else(|| unauthenticated("the session has expired: log in again with a token"))
    }

    /// Whether a caller is still authenticated: tokens expire and are revoked, sessions end.
    pub fn holds(&self, caller: &Caller) -> bool {
        let now_s = now_s();
        match &caller.credential {
            Credential::None => false,
            Credential::Given => true,
            Credential::Token(id) => lock(&self.tokens).by_id(id, now_s).is_some(),
            Credential::Session(hash) => {
                let open = lock(&self.sessions).by_hash(hash, now_s);
                open.is_some_and(|open| lock(&self.tokens).by_id(&open.token, now_s).is_some())
            }
        }
    }

    fn may_try(&self, from: IpAddr, now_s: u64) -> Result<()> {
        if lock(&self.attempts).may_try(from, now_s) {
            return Ok(());
        }
        Err(Problem::new(
            ProblemCode::TooMany,
            "too many failed authentication attempts: wait a minute",
        ))
    }

    /// Begins a session and returns its caller and cookie.
    ///
    /// # Errors
    /// When the token is invalid, or there were too many failed attempts.
    pub fn log_in(&self, token: &str, from: IpAddr) -> Result<(Caller, String)> {
        let now_s = now_s();
        let caller = self.by_bearer(token, from)?;
        let Credential::Token(id) = &caller.credential else {
            return Err(unauthenticated("malformed token"));
        };
        let begun = lock(&self.sessions).begin(id, caller.expires_s.unwrap_or(now_s), now_s);
        let (cookie, open) = begun.map_err(|error| io_problem("cannot begin a session", &error))?;
        let caller = Caller {
            csrf: Some(open.csrf),
            expires_s: Some(open.expires_s),
            ..caller
        };
        Ok((caller, cookie))
    }

    /// Ends the session of a caller.
    ///
    /// # Errors
    /// When the caller has no session.
    pub fn log_out(&self, caller: &Caller) -> Result<()> {
        match &caller.credential {
            Credential::Session(hash) => {
                lock(&self.sessions).end(hash);
                Ok(())
            }
            _ => Err(Problem::invalid(
                "this request belongs to no session: revoke a token with `convect token revoke`",
            )),
        }
    }

    /// Lists the tokens.
    pub fn token_list(&self) -> v1::TokenList {
        let now_s = now_s();
        let tokens = lock(&self.tokens);
        let items = tokens.tokens.iter().map(|kept| kept.token(now_s));
        v1::TokenList {
            items: items.collect(),
        }
    }

    /// Creates a token.
    ///
    /// # Errors
    /// When the name is invalid; as [`Tokens::add`]; or when it cannot be stored.
    pub fn token_create(&self, request: &v1::TokenCreate) -> Result<v1::TokenMade> {
        check_name("a token", &request.name)?;
        let now_s = now_s();
        let mut tokens = lock(&self.tokens);
        let mut more = tokens.clone();
        let (kept, secret) = more.add(request, now_s)?;
        self.keep(&more)?;
        *tokens = more;
        Ok(v1::TokenMade {
            token: kept.token(now_s),
            secret: Secret::new(secret),
        })
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// When it does not exist, or the change cannot be stored.
    pub fn token_revoke(&self, name: &str) -> Result<()> {
        let mut tokens = lock(&self.tokens);
        let mut fewer = tokens.clone();
        let Some(at) = fewer.tokens.iter().position(|kept| kept.name == name) else {
            return Err(Problem::not_found(format!(
                "unknown token {name}: see `convect token list`"
            )));
        };
        let gone = fewer.tokens.remove(at);
        self.keep(&fewer)?;
        *tokens = fewer;
        drop(tokens);
        lock(&self.sessions).end_of(&gone.id);
        Ok(())
    }

    /// Writes the audit entry of a requested change before it is made, and returns its number.
    ///
    /// # Errors
    /// When it cannot be written: the change must not be made then.
    pub fn asked(&self, caller: &Caller, operation: &str, subject: &str) -> Result<u64> {
        let note = Note {
            who: &caller.who,
            from: &caller.from,
            operation,
            subject,
            outcome: "asked",
            of: None,
        };
        let written = lock(&self.audit).write(&note, now_s());
        written.map_err(|error| {
            let message = format!(
                "nothing was done, since the audit log cannot be written ({error}): free space in \
                 the state folder or resolve the alert, and try again"
            );
            Problem::new(ProblemCode::Io, message)
        })
    }

    /// Writes the outcome of a change to the audit log.
    pub fn ended(&self, of: u64, caller: &Caller, operation: &str, outcome: &str) {
        let note = Note {
            who: &caller.who,
            from: &caller.from,
            operation,
            subject: "",
            outcome,
            of: Some(of),
        };
        if let Err(error) = lock(&self.audit).write(&note, now_s()) {
            tracing::error!("cannot write the outcome of entry {of} to the audit log: {error}");
        }
    }

    /// Failed attempts since the last call.
    pub fn failures(&self) -> Failures {
        lock(&self.attempts).take_fresh()
    }

    /// The first entry of the audit log whose hash does not match.
    pub fn broken_at(&self) -> Option<u64> {
        lock(&self.audit).list(None, 0).broken_at
    }

    /// The anchor of the audit log with its number; `None` when there is nothing to anchor.
    pub fn anchor(&self) -> Option<(u64, String)> {
        let anchor = lock(&self.audit).anchor()?;
        Some((anchor.number, anchor.text()))
    }

    /// Compares the audit log with the anchor in a pool.
    pub fn check_anchor(&self, anchor: &str) {
        lock(&self.audit).check(anchor);
    }

    /// Flushes the audit log, so that it survives a power failure.
    pub fn flush(&self) {
        if let Err(error) = lock(&self.audit).flush() {
            tracing::error!("cannot flush the audit log: {error}");
        }
    }

    /// Number of the newest entry of the audit log.
    pub fn changes(&self) -> u64 {
        lock(&self.audit).newest()
    }

    /// Lists the audit log.
    pub fn audit_list(&self, before: Option<u64>, limit: usize) -> v1::AuditList {
        lock(&self.audit).list(before, limit)
    }
}
