//! Words that docs/terminology.md has replaced: in how many files of the engine each still stands. The numbers may only fall.
//!
//! A word counts where it is a whole word of a comment or a part of an identifier: `leg` in `leg`, `read_leg` and `LegState`,
//! not in `legal`. Two words that are joined by `_` are looked for in identifiers alone.

use architecture_test::sources_under;
use std::collections::BTreeSet;

/// A line for each word: the word, the number of files that have it, and what is in its place.
const WORDS: &str = include_str!("words.txt");
const FOLDERS: [&str; 2] = ["crates/engine/src", "crates/engine/tests"];

/// Identifiers and words of a text in small letters, parts of identifiers joined by `_`.
fn identifiers(text: &str) -> BTreeSet<String> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let names = text.split(|character| !is_name(character));
    let names = names.filter(|name| !name.is_empty());
    names.map(snake_case).collect()
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut before = '_';
    for character in name.chars() {
        if character.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || before.is_ascii_digit())
        {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
        before = character;
    }
    snake
}

/// Whether `word` is `identifier`, or whole parts of it.
fn is_part(identifier: &str, word: &str) -> bool {
    format!("_{identifier}_").contains(&format!("_{word}_"))
}

#[test]
fn words_that_were_replaced_become_fewer() {
    let sources = FOLDERS.into_iter().flat_map(sources_under);
    let files: Vec<_> = sources.map(|source| identifiers(&source.text)).collect();
    assert!(files.len() > 100, "the engine's sources were not found");
    let mut faults = Vec::new();
    let lines = WORDS.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let columns: Vec<_> = line.splitn(3, " | ").collect();
        let [word, allowed, instead] = columns[..] else {
            panic!("{line}: a word, a number and its replacement are expected");
        };
        let allowed: usize = allowed.parse().expect("a number of files");
        let has_word = |names: &&BTreeSet<String>| names.iter().any(|name| is_part(name, word));
        let found = files.iter().filter(has_word).count();
        if found > allowed {
            faults.push(format!(
                "'{word}' is in {found} files, {allowed} are allowed: use '{instead}' (docs/terminology.md)"
            ));
        } else if found < allowed {
            faults.push(format!(
                "'{word}' is in {found} files only: write that number into words.txt"
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_word_is_found_in_identifiers_and_comments_and_only_whole() {
    for (text, word, found) in [
        ("// a leg of it", "leg", true),
        ("read_leg(1)", "leg", true),
        ("struct LegState;", "leg", true),
        ("legal", "leg", false),
        ("shadow_chunks.len()", "shadow_chunks", true),
        ("ShadowChunks", "shadow_chunks", true),
        ("shadow chunks", "shadow_chunks", false),
    ] {
        let names = identifiers(text);
        let is_there = names.iter().any(|name| is_part(name, word));
        assert_eq!(is_there, found, "{word} in {text}");
    }
}
