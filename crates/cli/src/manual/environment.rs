//! Files and environment variables that commands use, for the sections FILES and ENVIRONMENT.

/// Names, each with what it is.
pub type Entries = &'static [(&'static str, &'static str)];

/// Where commands work, by their first words.
enum Place {
    /// As clients of a daemon.
    Client,
    /// As the daemon.
    Daemon,
    /// On the drives of an offline pool.
    Drives,
    /// `convect lab`.
    Lab,
    /// On the files of the installation alone.
    Installation,
}

fn place(path: &str) -> Place {
    match path.split(' ').next() {
        Some("serve") => Place::Daemon,
        Some("check" | "repair" | "reidentify" | "dump" | "restore") => Place::Drives,
        Some("lab") => Place::Lab,
        Some("completions" | "man") => Place::Installation,
        _ => Place::Client,
    }
}

/// The files of the command that these words select, without the program's name.
pub fn files(path: &str) -> Entries {
    match place(path) {
        Place::Client => &[
            (
                "/run/convect/convect.sock",
                "Socket of the daemon of this host: root, the daemon's user and the members of its \
                 group may use it.",
            ),
            (
                "~/.config/convect/contexts.json",
                "Contexts, which name daemons on other hosts, and which of them is the current one.",
            ),
        ],
        Place::Daemon => &[
            (
                "/etc/convect/convect.toml",
                "Configuration, see convect.toml(5).",
            ),
            ("/run/convect/convect.sock", "Socket of the HTTP API."),
            (
                "/var/lib/convect",
                "State of the daemon besides the pools: which of them are open, tokens, targets of \
                 notifications, the log of changes, events and history.",
            ),
            (
                "/dev/shm",
                "Tails of the journals of the open pools, which outlive the daemon.",
            ),
        ],
        Place::Drives => &[(
            "DRIVE",
            "Drives are named on the command line; no configuration is read, and drives that are in \
             use are refused.",
        )],
        Place::Lab => &[(
            "convect-lab",
            "The program that is run, in the directory of convect.",
        )],
        Place::Installation => &[
            (
                "/usr/share/bash-completion/completions/convect",
                "Completions for bash, as packages install them.",
            ),
            (
                "/usr/share/man/man1/convect.1.gz",
                "Manual pages, as packages install them.",
            ),
        ],
    }
}

/// The variables of the command that these words select, without the program's name.
pub fn variables(path: &str) -> Entries {
    match place(path) {
        Place::Client => &[
            (
                "CONVECT_SOCKET",
                "Socket of the daemon, unless an option selects one.",
            ),
            (
                "CONVECT_CONTEXT",
                "Context to use, unless an option selects a daemon; not together with \
                 CONVECT_SOCKET.",
            ),
            (
                "CONVECT_TOKEN",
                "Token for a daemon on another host; it precedes that of the context.",
            ),
            (
                "XDG_CONFIG_HOME",
                "Directory of convect/contexts.json instead of ~/.config.",
            ),
            (
                "NO_COLOR",
                "If it is set and not empty, output has no colours, unless --color=always is given.",
            ),
        ],
        Place::Daemon => &[
            (
                "CONVECT_SOCKET",
                "Socket of the HTTP API, unless --socket is given; it precedes the configuration.",
            ),
            (
                "NOTIFY_SOCKET",
                "Socket on which the service manager is told about readiness, see sd_notify(3).",
            ),
            (
                "NO_COLOR",
                "Help and usage errors have no colours if it is set and not empty.",
            ),
        ],
        Place::Drives | Place::Lab | Place::Installation => &[(
            "NO_COLOR",
            "Help and usage errors have no colours if it is set and not empty.",
        )],
    }
}
