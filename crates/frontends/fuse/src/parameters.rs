//! The parameters of an export, read and checked.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// Longest name of a file, in bytes.
const NAME_MAX: usize = 255;

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::InvalidInput, text)
}

/// What an export was asked to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub mount: PathBuf,
    pub allow_other: bool,
}

/// Reads the parameters of the export `name`, which has to do as the name of a file.
pub(crate) fn parse(name: &str, parameters: &BTreeMap<String, String>) -> Result<Parameters> {
    if name.is_empty()
        || name == "."
        || name == ".."
        || name.len() > NAME_MAX
        || name.contains(['/', '\0'])
    {
        return Err(invalid(format!(
            "'{name}' cannot be the name of a file: choose another name for the export"
        )));
    }
    let mount = parameters
        .get("mount")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .ok_or_else(|| {
            invalid("a FUSE export needs mount: the absolute path of an empty folder".to_owned())
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
    Ok(Parameters { mount, allow_other })
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
    fn parameters_are_read() {
        let parameters = with("a", &[("mount", "/m"), ("allow-other", "yes")]).unwrap();
        assert!(parameters.allow_other && *parameters.mount == *"/m");
        assert!(!with("a", &[("mount", "/m")]).unwrap().allow_other);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (name, parameters) in [
            ("a", &[][..]),
            ("a", &[("mount", "relative")]),
            ("a", &[("mount", "/m"), ("allow-other", "maybe")]),
            ("a/b", &[("mount", "/m")]),
            ("..", &[("mount", "/m")]),
            ("", &[("mount", "/m")]),
        ] {
            assert!(with(name, parameters).is_err(), "{name} {parameters:?}");
        }
    }
}
