//! One cell: what a person reads, and the exact value for scripts and sorting.

use std::cmp::Ordering;
use units::{Utc, format_bytes};

#[derive(Clone, Debug)]
enum Exact {
    Nothing,
    Whole(u64),
    Real(f64),
    Text(String),
}

/// A cell's value.
#[derive(Clone, Debug)]
pub struct Value {
    shown: String,
    exact: Exact,
}

impl Value {
    fn new(shown: String, exact: Exact) -> Self {
        Self { shown, exact }
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        match text.is_empty() {
            true => Self::nothing(""),
            false => Self::new(text.clone(), Exact::Text(text)),
        }
    }

    /// A text that is shown in a form of its own.
    pub fn named(text: &str, shown: impl Into<String>) -> Self {
        Self::new(shown.into(), Exact::Text(text.to_owned()))
    }

    /// No value, shown as `shown`; `-` in exact output.
    pub fn nothing(shown: &str) -> Self {
        Self::new(shown.to_owned(), Exact::Nothing)
    }

    /// A whole number without a unit.
    pub fn count(number: impl Into<u64>) -> Self {
        let number = number.into();
        Self::new(number.to_string(), Exact::Whole(number))
    }

    /// Bytes.
    pub fn bytes(bytes: u64) -> Self {
        Self::new(format_bytes(bytes), Exact::Whole(bytes))
    }

    /// Bytes per second.
    pub fn rate(bytes: u64) -> Self {
        Self::new(format!("{}/s", format_bytes(bytes)), Exact::Whole(bytes))
    }

    /// A time, in seconds since 1970.
    pub fn date(seconds: u64) -> Self {
        Self::new(Utc::from_unix(seconds).to_string(), Exact::Whole(seconds))
    }

    /// Percent.
    pub fn percent(percent: f64) -> Self {
        Self::new(format!("{percent:.1} %"), Exact::Real(percent))
    }

    /// A whole number that is shown in a form of its own.
    pub fn whole(number: u64, shown: impl Into<String>) -> Self {
        Self::new(shown.into(), Exact::Whole(number))
    }

    /// A number that is shown in a form of its own.
    pub fn real(number: f64, shown: impl Into<String>) -> Self {
        Self::new(shown.into(), Exact::Real(number))
    }

    /// A value if there is one, else `shown`.
    pub fn or(value: Option<Self>, shown: &str) -> Self {
        value.unwrap_or_else(|| Self::nothing(shown))
    }

    /// As a person reads it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Nothing rounded, no units.
    pub fn exact(&self) -> String {
        match &self.exact {
            Exact::Nothing => "-".to_owned(),
            Exact::Whole(number) => number.to_string(),
            Exact::Real(number) => number.to_string(),
            Exact::Text(text) => text.clone(),
        }
    }

    /// Order by the exact value: nothing, numbers, texts.
    pub fn compare(&self, other: &Self) -> Ordering {
        let rank = |exact: &Exact| match exact {
            Exact::Nothing => 0,
            Exact::Whole(_) | Exact::Real(_) => 1,
            Exact::Text(_) => 2,
        };
        match (&self.exact, &other.exact) {
            (Exact::Whole(one), Exact::Whole(other)) => one.cmp(other),
            (Exact::Real(one), Exact::Real(other)) => one.total_cmp(other),
            (Exact::Text(one), Exact::Text(other)) => one.cmp(other),
            (one, other) => rank(one).cmp(&rank(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_rounded_and_exact_in_full() {
        for (value, shown, exact) in [
            (Value::bytes(1_500_000_000), "1.4 GiB", "1500000000"),
            (Value::rate(2048), "2 KiB/s", "2048"),
            (Value::percent(12.345), "12.3 %", "12.345"),
            (Value::count(7_u64), "7", "7"),
            (Value::text("a"), "a", "a"),
            (Value::text(""), "", "-"),
            (Value::nothing("?"), "?", "-"),
        ] {
            assert_eq!((value.shown(), value.exact().as_str()), (shown, exact));
        }
    }

    #[test]
    fn order_is_that_of_the_exact_values() {
        let less = |one: Value, other: Value| one.compare(&other) == Ordering::Less;
        assert!(less(Value::bytes(900 << 10), Value::bytes(1 << 20)));
        assert!(less(Value::nothing("-"), Value::count(0_u64)));
        assert!(less(Value::text("a"), Value::text("b")));
    }
}
