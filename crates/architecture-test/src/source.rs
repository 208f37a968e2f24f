//! A source file without comments and test modules.

/// One Rust file.
#[derive(Debug)]
pub struct Source {
    /// Its path relative to the workspace.
    pub name: String,
    /// All of it.
    pub text: String,
}

impl Source {
    /// Whether the file exists for tests only.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.name.contains("/tests/")
            || self.name.contains("/benches/")
            || self.name.ends_with("/tests.rs")
            || self.name.ends_with("_tests.rs")
    }

    /// The numbered lines (from 1) that ship: no comments, nothing from the first
    /// `#[cfg(test)]` module on.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = ["", "pub(crate) "].map(|to| format!("#[cfg(test)]\n{to}mod tests {{"));
        let ends = tests.iter().filter_map(|module| self.text.find(module));
        let end = ends.min().unwrap_or(self.text.len());
        self.text[..end]
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
    }

    /// The file's last name.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }
}

/// Whether `code` holds `word` as a whole path or identifier: `Instant` in `time::Instant` but
/// not in `InstantLike`, `std::time` but not `my_std::time`.
#[must_use]
pub fn mentions(code: &str, word: &str) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_only_whole() {
        for (code, word, found) in [
            ("use std::time::Instant;", "Instant", true),
            ("struct InstantLike;", "Instant", false),
            ("my_std::time::now()", "std::time", false),
            ("std::time::Duration", "std::time", true),
            ("let operand = 1;", "rand", false),
            ("rand::random()", "rand", true),
        ] {
            assert_eq!(mentions(code, word), found, "{word} in {code}");
        }
    }

    #[test]
    fn comments_and_test_modules_do_not_count() {
        let text = "//! Instant\nfn a() {} // Instant\n#[cfg(test)]\nmod tests {\nInstant\n}\n";
        let source = Source {
            name: "crates/x/src/a.rs".into(),
            text: text.into(),
        };
        let code: Vec<_> = source.code().collect();
        assert_eq!(code, [(1, ""), (2, "fn a() {} ")]);
    }
}
