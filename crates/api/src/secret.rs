//! Secrets: travelled and kept as text, and never shown by `Debug`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A token, password or key, or an address that contains one. It is written as its text by `serde` alone.
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

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use crate::v1::{TargetCreate, TargetTo};

    #[test]
    fn debug_shows_neither_a_webhook_url_nor_its_secret_and_json_has_both() {
        let json = r#"{"name":"a","to":{"kind":"webhook","url":"https://a.example/token","secret":"between us"}}"#;
        let create: TargetCreate = serde_json::from_str(json).unwrap();
        let shown = format!("{create:?}");
        assert!(
            !shown.contains("token") && !shown.contains("between us"),
            "{shown}"
        );
        let TargetTo::Webhook { url, .. } = &create.to else {
            panic!("{shown}");
        };
        assert_eq!(url.expose(), "https://a.example/token");
        let again = serde_json::to_string(&create).unwrap();
        assert!(
            again.contains(r#""url":"https://a.example/token""#),
            "{again}"
        );
    }
}
