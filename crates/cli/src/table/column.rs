//! The declaration of a column.

use super::Value;

/// What a column shows of a row.
pub type Get<T> = fn(&T) -> Value;

/// A column of a list of `T`. The first one declared names the objects unless another is
/// [`Column::key`]; the later a column is declared, the sooner a narrow terminal omits it.
pub struct Column<T> {
    /// Header, in capitals.
    pub header: &'static str,
    /// Whether it is right-aligned, as numbers are.
    pub right: bool,
    /// Whether it names the object: patterns are compared with it, and `name` selects it.
    pub key: bool,
    /// Whether patterns are compared with it too.
    pub matched: bool,
    /// Whether it is shown only when it is chosen.
    pub hidden: bool,
    /// The object's value.
    pub value: Get<T>,
}

impl<T> Column<T> {
    /// A column of texts.
    pub fn text(header: &'static str, value: Get<T>) -> Self {
        Self {
            header,
            right: false,
            key: false,
            matched: false,
            hidden: false,
            value,
        }
    }

    /// A column of numbers.
    pub fn number(header: &'static str, value: Get<T>) -> Self {
        Self {
            right: true,
            ..Self::text(header, value)
        }
    }

    /// Names the object.
    #[must_use]
    pub fn key(mut self) -> Self {
        self.key = true;
        self
    }

    /// Patterns are compared with it too.
    #[must_use]
    pub fn matched(mut self) -> Self {
        self.matched = true;
        self
    }

    /// Shown only when it is chosen.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// The name that selects it: its header in small letters, with `_` for spaces.
    pub fn name(&self) -> String {
        self.header.to_lowercase().replace(' ', "_")
    }

    /// Whether `name` selects it.
    pub fn is(&self, name: &str) -> bool {
        let wanted = name.trim().to_lowercase().replace([' ', '-'], "_");
        wanted == self.name() || (self.key && wanted == "name")
    }
}
