//! Export parameters: parsing and validation.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// Maximum length of a file name, in bytes.
const NAME_MAX: usize = 255;

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::InvalidInput, text)
}

/// Parameters of an export.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub mount: PathBuf,
    pub allow_other: bool,
    pub access: Access,
}

/// Ownership and permissions; by default those of the daemon and the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    /// Permission bits.
    pub mode: Option<u16>,
}

impl Access {
    fn parse(parameters: &BTreeMap<String, String>) -> Result<Self> {
        let id = |name: &str| {
            let text = parameters.get(name);
            text.map(|text| {
                let form = || {
                    invalid(format!(
                        "{name} is '{text}': write a numeric id, as printed by `id`"
                    ))
                };
                text.parse().map_err(|_| form())
            })
            .transpose()
        };
        let mode = parameters.get("mode").map(|text| {
            let mode = u16::from_str_radix(text, 8).ok();
            mode.filter(|mode| *mode <= 0o777).ok_or_else(|| {
                invalid(format!(
                    "mode is '{text}': use an octal number from 0 to 777, for example 0660"
                ))
            })
        });
        Ok(Self {
            uid: id("owner")?,
            gid: id("group")?,
            mode: mode.transpose()?,
        })
    }
}

/// Parses the parameters of the export `name`, which must be a valid file name.
pub(crate) fn parse(name: &str, parameters: &BTreeMap<String, String>) -> Result<Parameters> {
    if name.is_empty()
        || name == "."
        || name == ".."
        || name.len() > NAME_MAX
        || name.contains(['/', '\0'])
    {
        return Err(invalid(format!(
            "'{name}' is not a valid file name: choose another name for the export"
        )));
    }
    let mount = parameters
        .get("mount")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .ok_or_else(|| {
            invalid(
                "a FUSE export requires mount: the absolute path of an empty directory".to_owned(),
            )
        })?;
    let allow_other = match parameters.get("allow-other").map(String::as_str) {
        None | Some("no") => false,
        Some("yes") => true,
        Some(other) => {
            return Err(invalid(format!(
                "allow-other is '{other}': write yes or no"
            )));
        }
    };
    Ok(Parameters {
        mount,
        allow_other,
        access: Access::parse(parameters)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, parameters: &[(&str, &str)]) -> Result<Parameters> {
        let parameters = parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        parse(name, &parameters.collect())
    }

    #[test]
    fn parameters_are_parsed() {
        let parameters = with("a", &[("mount", "/m"), ("allow-other", "yes")]).unwrap();
        assert!(parameters.allow_other && *parameters.mount == *"/m");
        let without = with("a", &[("mount", "/m")]).unwrap();
        assert!(!without.allow_other && without.access == Access::default());
        let access = [
            ("mount", "/m"),
            ("mode", "0640"),
            ("owner", "7"),
            ("group", "8"),
        ];
        let expected = Access {
            uid: Some(7),
            gid: Some(8),
            mode: Some(0o640),
        };
        assert_eq!(with("a", &access).unwrap().access, expected);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for (name, parameters) in [
            ("a", &[][..]),
            ("a", &[("mount", "relative")]),
            ("a", &[("mount", "/m"), ("allow-other", "maybe")]),
            ("a", &[("mount", "/m"), ("mode", "1777")]),
            ("a", &[("mount", "/m"), ("mode", "rw")]),
            ("a", &[("mount", "/m"), ("owner", "-1")]),
            ("a", &[("mount", "/m"), ("group", "")]),
            ("a/b", &[("mount", "/m")]),
            ("..", &[("mount", "/m")]),
            ("", &[("mount", "/m")]),
        ] {
            assert!(with(name, parameters).is_err(), "{name} {parameters:?}");
        }
    }
}
