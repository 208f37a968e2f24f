//! Tokens: read from the environment or a file, never from the command line, which other users can
//! see.

use crate::Failure;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Maximum size of a token file, in bytes.
const FILE_MAX: u64 = 4096;

/// Validates a token; `place` says where it comes from.
///
/// # Errors
/// When it is malformed.
pub fn checked(text: &str, place: &str) -> Result<String, Failure> {
    let token = text.trim();
    match remote::is_token(token) {
        true => Ok(token.to_owned()),
        false => Err(Failure::Failed(format!(
            "{place} contains no valid token: store the output of `convect token create` there, \
             and nothing else"
        ))),
    }
}

/// Reads a token from a file that only its owner may access.
///
/// # Errors
/// When others may access it, it cannot be read, or it contains no token.
pub fn of_file(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let bad = |error: std::io::Error| {
        Failure::Failed(format!(
            "cannot read the token file {shown}: {error}: use --token-file with another file, or \
             set CONVECT_TOKEN"
        ))
    };
    let file = File::open(path).map_err(bad)?;
    let meta = file.metadata().map_err(bad)?;
    if meta.is_file() && meta.permissions().mode() & 0o077 != 0 {
        return Err(Failure::Failed(format!(
            "the token file {shown} is accessible by others than its owner: run `chmod 600 {shown}`"
        )));
    }
    let mut text = String::new();
    file.take(FILE_MAX).read_to_string(&mut text).map_err(bad)?;
    checked(&text, &format!("the file {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_file_must_be_private_and_contain_one_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (text, mode, good) in [
            ("convect_1_2\n", 0o600, true),
            ("convect_1_2", 0o400, true),
            ("convect_1_2", 0o640, false),
            ("convect_1_2", 0o604, false),
            ("", 0o600, false),
            ("two words", 0o600, false),
            ("convect_1\r\nX: y", 0o600, false),
            (&"x".repeat(513), 0o600, false),
        ] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = of_file(&path);
            assert_eq!(read.is_ok(), good, "{text:.20} {mode:o}");
            if good {
                assert_eq!(read.unwrap(), "convect_1_2");
            }
            std::fs::remove_file(&path).unwrap();
        }
        assert!(of_file(&path).is_err());
    }
}
