//! Paths on this host that remote callers may name in exports: only those in configured folders.
//!
//! The daemon runs as root, and creates a socket, mounts, or reads a file at such a path. Local
//! callers of the Unix socket may name any path; tokens, regardless of their role, only paths that
//! the administrator has permitted.

use api::v1::{Problem, ProblemCode};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Meaning of a path in a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Names {
    /// A Unix socket to create.
    Socket,
    /// A mount point.
    Mount,
    /// A file of secrets to read.
    Secret,
}

/// Protocol parameters that name paths.
const PATHS: &[(&str, &str, Names)] = &[
    ("vhost-user-blk", "path", Names::Socket),
    ("nbd", "listen", Names::Socket),
    ("nbd", "tls-certificate", Names::Secret),
    ("nbd", "tls-client-ca", Names::Secret),
    ("nbd", "tls-key", Names::Secret),
    ("fuse", "mount", Names::Mount),
    ("iscsi", "chap", Names::Secret),
];

/// Folders in which remote callers may name paths.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RemotePaths {
    /// For sockets of exports.
    pub sockets: Vec<PathBuf>,
    /// For mount points of exports.
    pub mounts: Vec<PathBuf>,
    /// For files of secrets.
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

/// The path in a parameter, and its meaning; nothing if it contains none. An unlisted parameter
/// that looks like a path is treated as a file of secrets.
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

/// Whether a path is inside of a folder: lexically, and with symbolic links of existing folders
/// resolved.
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

    /// Checks the parameters of an export that a remote caller creates or changes.
    ///
    /// # Errors
    /// When a path is outside of the permitted folders.
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
                true => "none are configured".to_owned(),
                false => format!("configured: {}", listed.join(", ")),
            };
            let message = format!(
                "{name} is {}, but remote callers may only name paths in configured folders \
                 (remote_paths.{key}; {allowed}): choose a path there, or create the export on \
                 this host through the daemon's Unix socket",
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
    fn only_paths_in_permitted_folders_are_accepted() {
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

    /// Every new parameter must be classified here.
    #[test]
    fn every_parameter_is_classified_as_path_or_not() {
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
                    "{} {}: add it to PATHS, or here",
                    row.name,
                    parameter.name
                );
            }
        }
    }
}
