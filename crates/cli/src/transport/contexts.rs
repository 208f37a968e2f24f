//! Contexts: named servers, stored in the user's configuration directory. The file contains no
//! secrets, but whoever can write it decides which certificates are trusted; hence only its owner
//! may.

use crate::Failure;
use api::v1::{Problem, ProblemCode};
use remote::{Address, Pin, Trust};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Name of the context for the Unix socket of this host.
pub const LOCAL: &str = "local";

const FILE: &str = "contexts.json";
/// Maximum size of the file in bytes; maximum number of contexts; maximum length of a name.
const FILE_MAX: u64 = 1 << 20;
const CONTEXTS_MAX: usize = 256;
const NAME_MAX: usize = 64;

/// A server and its credentials.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Context {
    /// `https://HOST:PORT`.
    pub server: String,
    /// Pinned fingerprint of its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// File of CA certificates that may have signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// File with the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
}

impl Context {
    /// The server's address and how its certificate is verified.
    ///
    /// # Errors
    /// When the file was written by another program.
    pub fn reach(&self) -> Result<(Address, Trust), Failure> {
        let trust = match (&self.pin, &self.ca) {
            (Some(pin), _) => Trust::Pin(Pin::parse(pin)?),
            (None, Some(path)) => Trust::Authorities(path.clone()),
            (None, None) => {
                return Err(Failure::Failed(format!(
                    "the context of {} does not say how to verify its certificate: remove it and \
                     add it again",
                    self.server
                )));
            }
        };
        Ok((Address::parse(&self.server)?, trust))
    }
}

/// All contexts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Contexts {
    /// The current context; the Unix socket of this host if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Contexts by name.
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
}

fn check_name(name: &str) -> Result<(), Failure> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(good) && name != LOCAL {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "invalid context name '{name}': use up to {NAME_MAX} letters, digits, '-', '_' and \
             '.'; {LOCAL} is reserved for the Unix socket of this host"
        ))),
    }
}

fn failed(what: &str, path: &Path, why: impl std::fmt::Display) -> Failure {
    let path = path.display();
    Failure::Failed(format!(
        "the contexts cannot be {what} {path}: {why}: check the file and its directory"
    ))
}

impl Contexts {
    /// Loads the contexts from a folder; none if there is no file.
    ///
    /// # Errors
    /// When the file cannot be read, is invalid, or is writable by others.
    pub fn load(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        let bad = |why: String| failed("read from", &path, why);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(bad(error.to_string())),
        };
        let meta = file.metadata().map_err(|error| bad(error.to_string()))?;
        if meta.permissions().mode() & 0o022 != 0 {
            return Err(bad(
                "it is writable by users other than its owner, who could change the trusted \
                 certificates"
                    .to_owned(),
            ));
        }
        let mut text = Vec::new();
        file.take(FILE_MAX)
            .read_to_end(&mut text)
            .map_err(|error| bad(error.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))
    }

    /// Changes the file in a folder under a lock; creates a missing file. Concurrent changes
    /// are serialised.
    ///
    /// # Errors
    /// When `change` fails, or the file cannot be read or written: it is unchanged then.
    pub fn change(
        folder: &Path,
        change: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let path = folder.join(FILE);
        let bad = |error: std::io::Error| failed("written to", &path, error);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(bad)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(folder.join(format!("{FILE}.lock")))
            .map_err(bad)?;
        lock.lock().map_err(bad)?;
        let mut contexts = Self::load(folder)?;
        change(&mut contexts)?;
        let text = serde_json::to_vec_pretty(&contexts).map_err(|error| bad(error.into()))?;
        daemon::write_whole(folder, FILE, &text, 0o600).map_err(bad)
    }

    /// Adds a context.
    ///
    /// # Errors
    /// When its name is invalid or taken, or the limit is reached.
    pub fn add(&mut self, name: &str, context: Context) -> Result<(), Failure> {
        check_name(name)?;
        if self.contexts.contains_key(name) {
            let text = format!(
                "context {name} already exists: choose another name, or run `convect context \
                 remove {name}` first"
            );
            return Err(Failure::Refused(Problem::new(ProblemCode::Exists, text)));
        }
        if self.contexts.len() >= CONTEXTS_MAX {
            return Err(Failure::Failed(format!(
                "the limit of {CONTEXTS_MAX} contexts is reached: remove unused ones"
            )));
        }
        self.contexts.insert(name.to_owned(), context);
        Ok(())
    }

    /// Looks up a context by name.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn of(&self, name: &str) -> Result<&Context, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let known = match names.is_empty() {
                true => "add it with `convect context add`".to_owned(),
                false => format!("choose one of {LOCAL}, {}", names.join(", ")),
            };
            Failure::Usage(format!("unknown context {name}: {known}"))
        })
    }

    /// Makes a context the current one.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn use_one(&mut self, name: &str) -> Result<(), Failure> {
        self.current = match name {
            LOCAL => None,
            name => self.of(name).map(|_| Some(name.to_owned()))?,
        };
        Ok(())
    }

    /// Removes a context. If it was the current one, the Unix socket of this host is used again.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn remove(&mut self, name: &str) -> Result<(), Failure> {
        self.of(name)?;
        self.contexts.remove(name);
        self.current.take_if(|current| current == name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(server: &str) -> Context {
        Context {
            server: server.to_owned(),
            pin: Some(format!("sha256:{}", "0".repeat(64))),
            ca: None,
            token_file: None,
        }
    }

    #[test]
    fn contexts_are_stored_until_removed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("convect");
        assert_eq!(Contexts::load(&folder).unwrap(), Contexts::default());
        Contexts::change(&folder, |all| all.add("a", context("https://a"))).unwrap();
        Contexts::change(&folder, |all| all.add("b", context("https://b:1"))).unwrap();
        let again = Contexts::change(&folder, |all| all.add("a", context("https://c")));
        assert!(again.unwrap_err().to_string().contains("already"));
        Contexts::change(&folder, |all| all.use_one("b")).unwrap();
        let read = Contexts::load(&folder).unwrap();
        assert_eq!(read.current.as_deref(), Some("b"));
        assert_eq!(read.of("a").unwrap().server, "https://a");
        let mode = std::fs::metadata(folder.join(FILE)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        Contexts::change(&folder, |all| all.remove("b")).unwrap();
        let read = Contexts::load(&folder).unwrap();
        assert_eq!((read.current.as_ref(), read.contexts.len()), (None, 1));
        assert!(Contexts::change(&folder, |all| all.use_one("b")).is_err());
        assert!(Contexts::change(&folder, |all| all.remove("b")).is_err());
        Contexts::change(&folder, |all| all.use_one("a")).unwrap();
        Contexts::change(&folder, |all| all.use_one(LOCAL)).unwrap();
        assert_eq!(Contexts::load(&folder).unwrap().current, None);
    }

    #[test]
    fn invalid_context_names_are_refused() {
        let mut all = Contexts::default();
        let long = "x".repeat(NAME_MAX + 1);
        for name in ["", "a b", "a/b", "ä", LOCAL, &long] {
            assert!(all.add(name, context("https://a")).is_err(), "{name}");
        }
        all.add("eu-1.a_B", context("https://a")).unwrap();
    }

    #[test]
    fn invalid_or_foreign_writable_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, "{}").unwrap();
        for (mode, good) in [(0o600, true), (0o644, true), (0o664, false), (0o602, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Contexts::load(folder.path()).is_ok(), good, "{mode:o}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "[").unwrap();
        let error = Contexts::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("contexts.json"), "{error}");
    }
}
