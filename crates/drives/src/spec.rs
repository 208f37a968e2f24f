//! The text form of a drive: `KIND:NAME[?size=SIZE]`.

use crate::OpenError;

/// Smallest drive in bytes.
pub(crate) const SIZE_MIN: u64 = 1 << 20;
/// Sizes are whole blocks of this many bytes.
pub(crate) const SIZE_STEP: u64 = 4096;
/// Longest name of a drive that is not a path, in bytes.
const NAME_MAX: usize = 64;

/// What follows the kind, for the kinds that have a name and perhaps a size.
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
            "'{spec}' is not a drive: write a kind and a name like file:/dev/sdb, or an absolute path"
        ))
    })
}

/// Reads `NAME[?size=SIZE]`.
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
            "'{kind}:{rest}': '{parameters}' is not a parameter of a drive; the only one is size, as in ?size=8G"
        )));
    };
    let size = units::parse_bytes(text)
        .map_err(|error| OpenError::syntax(format!("'{kind}:{rest}': {error}")))?;
    if size < SIZE_MIN {
        return Err(OpenError::new(
            crate::OpenErrorKind::TooSmall,
            format!(
                "'{kind}:{rest}': a drive has at least {}: ask for more",
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
            None => format!("{kind}:{}", self.name),
        }
    }
}
