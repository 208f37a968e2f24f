//! Where an export is.

use std::path::PathBuf;

/// A server of NBD: `nbd+unix:///EXPORT?socket=PATH`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub export: String,
    pub socket: PathBuf,
}

impl std::str::FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.strip_prefix("nbd+unix:///");
        let parts = parts.and_then(|parts| parts.split_once("?socket="));
        let parts = parts.filter(|(_, socket)| !socket.is_empty());
        let (export, socket) = parts.ok_or_else(|| {
            format!("'{text}' names no export: write nbd+unix:///EXPORT?socket=PATH")
        })?;
        Ok(Self {
            export: export.to_owned(),
            socket: socket.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_export_and_a_socket() {
        let place: Place = "nbd+unix:///disk?socket=/run/x.sock"
            .parse()
            .expect("right");
        assert_eq!(place.export, "disk");
        assert_eq!(place.socket, PathBuf::from("/run/x.sock"));
        for wrong in [
            "nbd://host/disk",
            "nbd+unix:///disk",
            "nbd+unix:///disk?socket=",
        ] {
            let refused = wrong.parse::<Place>().expect_err(wrong);
            assert!(
                refused.contains("nbd+unix:///EXPORT?socket=PATH"),
                "{refused}"
            );
        }
    }
}
