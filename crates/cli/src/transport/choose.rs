//! Selects the daemon of a command: by the command line, then the environment, then the current
//! context, else the Unix socket of this host.

use super::{Context, Contexts, LOCAL, Transport, token};
use crate::Failure;
use api::Secret;
use clap::Args;
use remote::{Address, Pin, Server, Trust};
use std::path::{Path, PathBuf};

/// Heading of these options in help texts.
const CONNECTION: &str = "Connection";

/// Options that select the daemon.
#[derive(Args, Clone, Debug, Default)]
pub struct DaemonSelection {
    /// Unix socket of a daemon on this host [env: CONVECT_SOCKET=]
    #[arg(long, global = true, help_heading = CONNECTION, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Address of a daemon's `serve --listen`; the token is taken from CONVECT_TOKEN or
    /// --token-file
    #[arg(long, global = true, help_heading = CONNECTION, value_name = "https://HOST:PORT")]
    pub server: Option<String>,
    /// SHA-256 fingerprint of the server's certificate, as printed in its log; must precede the
    /// command
    // Not global: `volume set` has a --pin of its own.
    #[arg(long, help_heading = CONNECTION, value_name = "sha256:...")]
    pub pin: Option<String>,
    /// File of CA certificates (PEM), one of which signed the server's certificate
    #[arg(long, global = true, help_heading = CONNECTION, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// File with the API token, readable by its owner only
    #[arg(long, global = true, help_heading = CONNECTION, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Context created by `context add`, or `local` [env: CONVECT_CONTEXT=]
    #[arg(long, global = true, help_heading = CONNECTION, value_name = "NAME")]
    pub context: Option<String>,
}

/// Environment variables in effect.
#[derive(Debug, Default)]
pub struct Environment {
    /// `CONVECT_SOCKET`.
    pub socket: Option<PathBuf>,
    /// `CONVECT_CONTEXT`.
    pub context: Option<String>,
    /// `CONVECT_TOKEN`.
    pub token: Option<Secret>,
    /// The user's configuration directory for this program.
    pub folder: Option<PathBuf>,
}

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Environment {
    /// Reads the environment. The directory follows the XDG base directory specification.
    pub fn read() -> Self {
        let folder = match variable("XDG_CONFIG_HOME") {
            Some(folder) => Some(PathBuf::from(folder)),
            None => variable("HOME").map(|home| Path::new(&home).join(".config")),
        };
        Self {
            socket: variable("CONVECT_SOCKET").map(PathBuf::from),
            context: variable("CONVECT_CONTEXT"),
            token: variable("CONVECT_TOKEN").map(Secret::new),
            folder: folder.map(|folder| folder.join("convect")),
        }
    }

    /// The directory of the contexts.
    ///
    /// # Errors
    /// When the user's configuration directory is unknown.
    pub fn folder(&self) -> Result<&Path, Failure> {
        self.folder.as_deref().ok_or_else(|| {
            Failure::Failed(
                "no configuration directory for contexts: set HOME or XDG_CONFIG_HOME".to_owned(),
            )
        })
    }
}

fn usage<T>(message: &str) -> Result<T, Failure> {
    Err(Failure::Usage(message.to_owned()))
}

impl DaemonSelection {
    /// Whether the command line selects a daemon other than by a socket.
    pub fn names_server(&self) -> bool {
        let Self {
            socket: _,
            server,
            pin,
            ca,
            token_file,
            context,
        } = self;
        let paths = ca.is_some() || token_file.is_some();
        server.is_some() || pin.is_some() || context.is_some() || paths
    }

    /// How to verify the certificate of `--server`, if given.
    ///
    /// # Errors
    /// When it is ambiguous or invalid.
    pub fn trust(&self) -> Result<Option<Trust>, Failure> {
        match (&self.pin, &self.ca) {
            (Some(_), Some(_)) => usage("--pin and --ca are mutually exclusive: write one"),
            (Some(pin), None) => Ok(Some(Trust::Pin(Pin::parse(pin)?))),
            (None, Some(path)) => Ok(Some(Trust::Authorities(path.clone()))),
            (None, None) => Ok(None),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let named = [
            self.socket.is_some(),
            self.server.is_some(),
            self.context.is_some(),
        ];
        if named.iter().filter(|named| **named).count() > 1 {
            return usage("--socket, --server and --context are mutually exclusive: write one");
        }
        if self.server.is_none() && (self.pin.is_some() || self.ca.is_some()) {
            return usage("--pin and --ca require --server: add --server https://HOST:PORT");
        }
        Ok(())
    }

    /// The token for a server.
    fn token(
        &self,
        environment: &Environment,
        kept: Option<&Path>,
        server: &Address,
    ) -> Result<String, Failure> {
        match (&self.token_file, &environment.token, kept) {
            (Some(path), _, _) => token::of_file(path),
            (None, Some(text), _) => token::checked(text.expose(), "CONVECT_TOKEN"),
            (None, None, Some(path)) => token::of_file(path),
            (None, None, None) => Err(Failure::Usage(format!(
                "{server} requires a token: set CONVECT_TOKEN, or use --token-file; create a \
                 token on its host with `convect token create`"
            ))),
        }
    }

    fn server(&self, environment: &Environment, text: &str) -> Result<Transport, Failure> {
        let address = Address::parse(text)?;
        let Some(trust) = self.trust()? else {
            return Err(Failure::Usage(format!(
                "the certificate of {address} cannot be verified: add --pin with the fingerprint \
                 from the daemon's log, or --ca; `convect context add` stores it"
            )));
        };
        let token = self.token(environment, None, &address)?;
        Ok(Transport::Server(Box::new(Server::new(
            address, &trust, token,
        )?)))
    }

    fn of_context(
        &self,
        environment: &Environment,
        context: &Context,
    ) -> Result<Transport, Failure> {
        let (address, trust) = context.reach()?;
        let token = self.token(environment, context.token_file.as_deref(), &address)?;
        Ok(Transport::Server(Box::new(Server::new(
            address, &trust, token,
        )?)))
    }

    /// The context in effect; nothing for the Unix socket of this host.
    fn context(&self, environment: &Environment) -> Result<Option<Context>, Failure> {
        let named = match (&self.context, &environment.context) {
            (Some(name), _) => Some(name),
            (None, Some(_)) if environment.socket.is_some() => {
                return usage(
                    "CONVECT_SOCKET and CONVECT_CONTEXT are mutually exclusive: unset one",
                );
            }
            (None, named) => named.as_ref(),
        };
        match named {
            Some(name) if name == LOCAL => Ok(None),
            Some(name) => Contexts::load(environment.folder()?)?
                .of(name)
                .map(|found| Some(found.clone())),
            None if environment.socket.is_some() => Ok(None),
            None => match &environment.folder {
                Some(folder) => {
                    let all = Contexts::load(folder)?;
                    let current = all.current.as_deref();
                    current.map(|name| all.of(name).cloned()).transpose()
                }
                None => Ok(None),
            },
        }
    }
}

/// The transport to the selected daemon. Nothing is sent yet.
///
/// # Errors
/// When the selection is ambiguous or invalid.
pub fn choose(reach: &DaemonSelection, environment: &Environment) -> Result<Transport, Failure> {
    reach.check()?;
    if let Some(text) = &reach.server {
        return reach.server(environment, text);
    }
    if reach.socket.is_none()
        && let Some(context) = reach.context(environment)?
    {
        return reach.of_context(environment, &context);
    }
    if reach.token_file.is_some() {
        return usage(
            "--token-file applies to a server, not to a Unix socket: remove it, or add --server",
        );
    }
    let given = reach.socket.as_ref().or(environment.socket.as_ref());
    let socket = given
        .cloned()
        .unwrap_or_else(|| daemon::Config::default().socket);
    Ok(Transport::Socket(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    const PIN: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    /// A folder with the contexts `a`, with a token, and `b`, without.
    fn folder() -> tempfile::TempDir {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        let options = std::fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&token_file);
        options.unwrap().write_all(b"kept").unwrap();
        let context = |server: &str, token_file| Context {
            server: server.to_owned(),
            pin: Some(PIN.to_owned()),
            ca: None,
            token_file,
        };
        Contexts::change(folder.path(), |all| {
            all.add("a", context("https://a:1", Some(token_file)))?;
            all.add("b", context("https://b:2", None))
        })
        .unwrap();
        folder
    }

    /// The daemon and token selected by these arguments and variables.
    fn chosen(
        folder: &Path,
        [socket, server, pin, context]: [Option<&str>; 4],
        [in_socket, in_context, in_token]: [Option<&str>; 3],
    ) -> Result<String, String> {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let reach = DaemonSelection {
            socket: own(socket).map(PathBuf::from),
            server: own(server),
            pin: own(pin),
            context: own(context),
            ..DaemonSelection::default()
        };
        let environment = Environment {
            socket: own(in_socket).map(PathBuf::from),
            context: own(in_context),
            token: own(in_token).map(Secret::new),
            folder: Some(folder.to_owned()),
        };
        match choose(&reach, &environment) {
            Ok(Transport::Server(server)) => Ok(format!("{} {}", server.address(), server.token())),
            Ok(transport) => Ok(transport.name()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn command_line_precedes_environment_precedes_context() {
        let folder = folder();
        let folder = folder.path();
        let (s, a, b) = (Some("/s"), Some("a"), Some("b"));
        let (server, pin, token) = (Some("https://c:3"), Some(PIN), Some("given"));
        let none = [None; 3];
        let check = |line, environment, expected: &str| {
            let found = chosen(folder, line, environment);
            assert_eq!(found.as_deref(), Ok(expected), "{line:?} {environment:?}");
        };
        check([None; 4], none, "/run/convect/convect.sock");
        check([s, None, None, None], none, "/s");
        check([None; 4], [s, None, None], "/s");
        check([Some("/t"), None, None, None], [s, None, None], "/t");
        check(
            [None, server, pin, None],
            [s, None, token],
            "https://c:3 given",
        );
        check([None, None, None, a], none, "https://a:1 kept");
        check([None, None, None, a], [s, None, token], "https://a:1 given");
        check([None, None, None, b], [None, a, token], "https://b:2 given");
        check([None; 4], [None, a, None], "https://a:1 kept");
        check(
            [None, None, None, Some(LOCAL)],
            [None, a, None],
            "/run/convect/convect.sock",
        );
        Contexts::change(folder, |all| all.use_one("a")).unwrap();
        check([None; 4], none, "https://a:1 kept");
        check([None; 4], [s, None, None], "/s");
        check([s, None, None, None], none, "/s");
        check([None; 4], [None, b, token], "https://b:2 given");
        check(
            [None; 4],
            [None, Some(LOCAL), None],
            "/run/convect/convect.sock",
        );
    }

    #[test]
    fn ambiguous_or_incomplete_selection_is_refused_with_advice() {
        let folder = folder();
        let (s, a, b) = (Some("/s"), Some("a"), Some("b"));
        let (server, pin, token) = (Some("https://c:3"), Some(PIN), Some("given"));
        for (line, environment, said) in [
            ([s, server, pin, None], [None; 3], "write one"),
            ([s, None, None, a], [None; 3], "write one"),
            ([None, server, pin, a], [None; 3], "write one"),
            ([None, None, pin, a], [None; 3], "require --server"),
            ([None; 4], [s, a, None], "unset one"),
            ([None, server, None, None], [None, None, token], "--pin"),
            ([None, server, pin, None], [None; 3], "CONVECT_TOKEN"),
            (
                [None, server, pin, None],
                [None, None, Some("a b")],
                "contains no valid token",
            ),
            (
                [None, server, Some("1"), None],
                [None, None, token],
                "not a fingerprint",
            ),
            (
                [None, Some("c:3"), pin, None],
                [None, None, token],
                "https://HOST:PORT",
            ),
            ([None, None, None, b], [None; 3], "CONVECT_TOKEN"),
            (
                [None, None, None, Some("c")],
                [None; 3],
                "choose one of local, a, b",
            ),
        ] {
            let error = chosen(folder.path(), line, environment).unwrap_err();
            assert!(error.contains(said), "{line:?} {environment:?}: {error}");
        }
    }
}
