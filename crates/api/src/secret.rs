//! Secrets: travelled and kept as text, and never shown by `Debug`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A token, password or key. It is written as its text by `serde` alone.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A text that is not to be shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whoever has to send or compare it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_and_travels_as_its_text() {
        let secret = Secret::new("between us");
        assert_eq!(
            format!("{:?} {:#?}", secret, Some(&secret))
                .matches("between")
                .count(),
            0
        );
        let text = serde_json::to_string(&secret).unwrap();
        assert_eq!(text, "\"between us\"");
        assert_eq!(serde_json::from_str::<Secret>(&text).unwrap(), secret);
    }
}
