//! Paths of this host that callers by the network may name in exports: only those in folders of the configuration.
//!
//! Whoever names a path has the daemon, which is root, make a socket, a mount or read a file there. Root's own user of
//! the Unix socket may name any; a token, whatever its role, only what an administrator set aside for it.

use api::v1::{Problem, ProblemCode};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// What a parameter of an export names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Names {
    /// A Unix socket that is made.
    Socket,
    /// A folder that is mounted on.
    Mount,
    /// A file with secrets that is read.
    Secret,
}

/// The parameters of front ends that name paths.
const PATHS: &[(&str, &str, Names)] = &[
    ("vhost-user-blk", "path", Names::Socket),
    ("nbd", "listen", Names::Socket),
    ("nbd", "tls-certificate", Names::Secret),
    ("nbd", "tls-client-ca", Names::Secret),
    ("nbd", "tls-key", Names::Secret),
    ("fuse", "mount", Names::Mount),
    ("iscsi", "chap", Names::Secret),
];

/// Folders in which callers by the network may name paths.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RemotePaths {
    /// Sockets of exports.
    pub sockets: Vec<PathBuf>,
    /// Folders that exports are mounted on.
    pub mounts: Vec<PathBuf>,
    /// Files with secrets of exports.
    pub secrets: Vec<PathBuf>,
}

impl Default for RemotePaths {
    fn default() -> Self {
        Self {
            sockets: vec!["/run/convect".into()],
            mounts: vec!["/srv/convect".into()],
            secrets: vec!["/etc/convect/chap".into()],
        }
    }
}

/// The path that a parameter names, and what it is; nothing where it names none. One that is not in the table and looks
/// like a path counts as a file with secrets.
fn named<'a>(kind: &str, name: &str, value: &'a str) -> Option<(Names, &'a Path)> {
    let value = value.strip_prefix("unix:").unwrap_or(value);
    let row = PATHS.iter().find(|row| (row.0, row.1) == (kind, name));
    let names = match row {
        Some(_) if value.starts_with("tcp:") => return None,
        Some((_, _, names)) => *names,
        None if value.starts_with('/') => Names::Secret,
        None => return None,
    };
    Some((names, Path::new(value)))
}

/// Whether a path lies beneath a folder: as it is written, and with the links of the folders that are there followed.
fn lies_in(path: &Path, folder: &Path) -> bool {
    let plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let Some(above) = path
        .parent()
        .filter(|_| plain && path.starts_with(folder) && path != folder)
    else {
        return false;
    };
    let is_link = path
        .symlink_metadata()
        .is_ok_and(|meta| meta.file_type().is_symlink());
    match (above.canonicalize(), folder.canonicalize()) {
        (Ok(above), Ok(folder)) => !is_link && above.starts_with(folder),
        _ => false,
    }
}

impl RemotePaths {
    fn folders(&self, names: Names) -> (&[PathBuf], &'static str) {
        match names {
            Names::Socket => (&self.sockets, "sockets"),
            Names::Mount => (&self.mounts, "mounts"),
            Names::Secret => (&self.secrets, "secrets"),
        }
    }

    /// Checks the parameters of an export that a caller by the network wants to make or change.
    ///
    /// # Errors
    /// When one of them names a path elsewhere.
    pub fn check(&self, kind: &str, parameters: &BTreeMap<String, String>) -> Result<(), Problem> {
        for (name, value) in parameters {
            let Some((names, path)) = named(kind, name, value) else {
                continue;
            };
            let (folders, key) = self.folders(names);
            if folders.iter().any(|folder| lies_in(path, folder)) {
                continue;
            }
            let listed: Vec<_> = folders
                .iter()
                .map(|folder| folder.display().to_string())
                .collect();
            let allowed = match listed.is_empty() {
                true => "there are none".to_owned(),
                false => format!("of those that are there: {}", listed.join(", ")),
            };
            let message = format!(
                "{name} names {}, and by the network only paths in folders of the configuration can be named \
                 (remote_paths.{key}; {allowed}): choose one there, or ask root of this host to make the export by the \
                 daemon's socket",
                path.display()
            );
            return Err(Problem::new(ProblemCode::Forbidden, message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(paths: &RemotePaths, kind: &str, name: &str, value: &str) -> bool {
        let parameters = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        paths.check(kind, &parameters).is_ok()
    }

    #[test]
    fn only_paths_in_the_folders_of_their_kind_can_be_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        for name in ["sockets", "mounts", "secrets", "other", "sockets/within"] {
            std::fs::create_dir_all(at.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(at.join("other"), at.join("sockets/link")).unwrap();
        std::fs::write(at.join("other/file"), "").unwrap();
        std::os::unix::fs::symlink(at.join("other/file"), at.join("secrets/link")).unwrap();
        let paths = RemotePaths {
            sockets: vec![at.join("sockets")],
            mounts: vec![at.join("mounts")],
            secrets: vec![at.join("secrets")],
        };
        let cases = [
            ("nbd", "listen", "unix:{}/sockets/a", true),
            ("nbd", "listen", "unix:{}/sockets/within/a", true),
            ("nbd", "listen", "tcp:127.0.0.1:1", true),
            ("nbd", "listen", "unix:{}/sockets", false),
            ("nbd", "listen", "unix:{}/other/a", false),
            ("nbd", "listen", "unix:{}/sockets/../other/a", false),
            ("nbd", "listen", "unix:{}/sockets/link/a", false),
            ("nbd", "listen", "unix:{}/sockets/missing/a", false),
            ("nbd", "listen", "unix:a", false),
            ("vhost-user-blk", "path", "{}/sockets/a", true),
            ("vhost-user-blk", "path", "{}/mounts/a", false),
            ("fuse", "mount", "{}/mounts/a", true),
            ("fuse", "mount", "/etc/cron.d", false),
            ("iscsi", "chap", "{}/secrets/a", true),
            ("iscsi", "chap", "{}/secrets/link", false),
            ("iscsi", "chap", "/etc/shadow", false),
            ("iscsi", "portal", "[::1]:3260", true),
            ("nbd", "later", "/etc/shadow", false),
        ];
        for (kind, name, value, good) in cases {
            let value = value.replace("{}", &at.display().to_string());
            assert_eq!(
                check(&paths, kind, name, &value),
                good,
                "{kind} {name}={value}"
            );
        }
        let none = RemotePaths {
            sockets: Vec::new(),
            ..paths
        };
        assert!(!check(&none, "nbd", "listen", "unix:/a"));
    }

    /// Whoever adds a parameter says here whether it names a path of this host.
    #[test]
    fn every_parameter_is_known_to_name_a_path_or_not_to() {
        let without = [
            "addresses",
            "allow-other",
            "connections",
            "group",
            "groups",
            "initiators",
            "lun",
            "max-connections",
            "max-connections-per-address",
            "mode",
            "owner",
            "polling",
            "portal",
            "queues",
            "read-only",
            "states",
            "target",
            "tls",
            "without-authentication",
        ];
        for row in crate::FRONT_ENDS {
            for parameter in row.parameters {
                let known = PATHS
                    .iter()
                    .any(|path| (path.0, path.1) == (row.name, parameter.name));
                assert!(
                    known || without.contains(&parameter.name),
                    "{} {}: enter it into PATHS, or here",
                    row.name,
                    parameter.name
                );
            }
        }
    }
}
