//! The text form of a drive: `KIND:NAME[?[size=SIZE]]`. The last question mark ends the name: a path that contains
//! one is followed by another, as in `file:/srv/what?.img?`.

use crate::OpenError;

/// Smallest drive in bytes.
pub const SIZE_MIN: u64 = 1 << 20;
/// Sizes are whole blocks of this many bytes.
pub(crate) const SIZE_STEP: u64 = 4096;
/// Longest name of a drive that is not a path, in bytes.
const NAME_MAX: usize = 64;

/// The part after the kind, for the kinds that have a name and perhaps a size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    /// Path or name.
    pub name: String,
    /// Size in bytes, a multiple of [`SIZE_STEP`] and at least [`SIZE_MIN`].
    pub size: Option<u64>,
}

/// Divides `KIND:REST`; a bare absolute path is of kind `file`.
pub(crate) fn split_kind(spec: &str) -> Result<(&str, &str), OpenError> {
    if spec.starts_with('/') {
        return Ok(("file", spec));
    }
    spec.split_once(':').ok_or_else(|| {
        OpenError::syntax(format!(
            "'{spec}' is not a drive: use a kind and a name, like file:/dev/sdb, or an absolute path"
        ))
    })
}

/// Reads `NAME[?[size=SIZE]]`.
pub(crate) fn parse_named(kind: &str, rest: &str) -> Result<Named, OpenError> {
    let (name, parameters) = match rest.rsplit_once('?') {
        Some((name, parameters)) => (name, Some(parameters)),
        None => (rest, None),
    };
    if name.is_empty() {
        return Err(OpenError::syntax(format!(
            "'{kind}:{rest}' has no name after '{kind}:'"
        )));
    }
    let parameters = parameters.filter(|text| !text.is_empty());
    let size = parameters
        .map(|text| parse_size(kind, rest, text))
        .transpose()?;
    Ok(Named {
        name: name.to_owned(),
        size,
    })
}

fn parse_size(kind: &str, rest: &str, parameters: &str) -> Result<u64, OpenError> {
    let Some(text) = parameters.strip_prefix("size=") else {
        return Err(OpenError::syntax(format!(
            "'{kind}:{rest}': '{parameters}' is not a parameter of a drive; the only one is size, as in ?size=8G; append another '?' to a path that contains one"
        )));
    };
    let size = units::parse_bytes(text)
        .map_err(|error| OpenError::syntax(format!("'{kind}:{rest}': {error}")))?;
    if size < SIZE_MIN {
        return Err(OpenError::new(
            crate::OpenErrorKind::TooSmall,
            format!(
                "'{kind}:{rest}': the minimum size of a drive is {}",
                units::format_bytes(SIZE_MIN)
            ),
        ));
    }
    if !size.is_multiple_of(SIZE_STEP) || i64::try_from(size).is_err() {
        return Err(OpenError::syntax(format!(
            "'{kind}:{rest}': a drive's size is a multiple of {SIZE_STEP} bytes below 8 EiB"
        )));
    }
    Ok(size)
}

/// The path of a file or block device, if the text names one, also one beneath a model, and whether it requests a
/// size: then a missing file is created.
pub fn file_path(spec: &str) -> Option<(String, bool)> {
    match split_kind(spec).ok()? {
        ("file", rest) => {
            let named = parse_named("file", rest).ok()?;
            Some((named.name, named.size.is_some()))
        }
        ("model", rest) => file_path(rest.split_once(':')?.1),
        _ => None,
    }
}

/// Refuses names that would not be read back as they are.
pub(crate) fn check_name(kind: &str, name: &str) -> Result<(), OpenError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.len() <= NAME_MAX && name.chars().all(plain) {
        return Ok(());
    }
    Err(OpenError::syntax(format!(
        "'{kind}:{name}': a name has at most {NAME_MAX} letters, digits, '-', '_' and '.'"
    )))
}

/// A size as it is written in a spec: the biggest unit that divides it.
pub(crate) fn exact_size(size: u64) -> String {
    for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
        if size.is_multiple_of(1 << shift) {
            return format!("{}{unit}", size >> shift);
        }
    }
    size.to_string()
}

impl Named {
    /// The text that [`parse_named`] reads, with its kind.
    pub(crate) fn text(&self, kind: &str) -> String {
        match self.size {
            Some(size) => format!("{kind}:{}?size={}", self.name, exact_size(size)),
            None if self.name.contains('?') => format!("{kind}:{}?", self.name),
            None => format!("{kind}:{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_question_marks_is_read_back_as_it_is() {
        for name in [
            "/a",
            "/a?",
            "/a?size=1M",
            "/a?size=",
            "/?",
            "/a??",
            "/a?b?c",
        ] {
            for size in [None, Some(1 << 20)] {
                let named = Named {
                    name: name.to_owned(),
                    size,
                };
                let text = named.text("file");
                let rest = text.strip_prefix("file:").unwrap();
                assert_eq!(parse_named("file", rest).unwrap(), named, "{text}");
                assert_eq!(file_path(&text), Some((name.to_owned(), size.is_some())));
            }
        }
        assert_eq!(file_path("/a?size=1M"), Some(("/a".to_owned(), true)));
        assert_eq!(file_path("ram:a?size=1M"), None);
        let modelled = file_path("model:hdd-7200:/a?size=1M");
        assert_eq!(modelled, Some(("/a".to_owned(), true)));
        assert!(parse_named("file", "/a?b").is_err());
    }
}
