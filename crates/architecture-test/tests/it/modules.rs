//! Which part of the engine may name which, and the uses against it that are left: these may only become fewer.
//!
//! Lower parts know nothing of those above them: one can change the allocator without reading tiering. A use counts where a
//! file of one part names another one's path (`crate::part`); files of tests do not count.

use architecture_test::sources_under;
use std::collections::{BTreeMap, BTreeSet};

/// Parts, each with those that it may name, from the bottom up.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("vdrive", &[]),
    ("space", &[]),
    ("wal", &["space", "vdrive"]),
    ("map", &["space", "wal"]),
    ("cache", &["map", "vdrive"]),
    ("io", &["cache", "map", "space", "vdrive", "wal"]),
    ("checkpoint", &["map", "space", "vdrive", "wal"]),
    ("recovery", &["checkpoint", "map", "space", "vdrive", "wal"]),
    (
        "tiering",
        &["cache", "checkpoint", "io", "map", "space", "vdrive", "wal"],
    ),
    (
        "maintenance",
        &[
            "cache",
            "checkpoint",
            "io",
            "map",
            "space",
            "tiering",
            "vdrive",
            "wal",
        ],
    ),
    (
        "shard",
        &[
            "cache",
            "checkpoint",
            "io",
            "maintenance",
            "map",
            "recovery",
            "space",
            "tiering",
            "vdrive",
            "wal",
        ],
    ),
    ("device", &["shard"]),
    ("pool", &["device", "shard", "space", "vdrive"]),
    ("control", &["device", "pool"]),
];
/// What is for benchmarks and tests of other crates sees everything.
const SEE_ALL: [&str; 3] = ["bench", "harness", "lib"];

/// Uses against that: a line `part -> part`, then one for each file that has it.
const AGAINST: &str = include_str!("modules.txt");

/// The parts that a line of code names.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("crate::").filter_map(|(at, path)| {
        let rest = &line[at + path.len()..];
        let end =
            rest.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        let part = &rest[..end.unwrap_or(rest.len())];
        (!part.is_empty()).then_some(part)
    })
}

/// Files by `part -> part` of uses that the table does not allow.
fn uses_against() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let folder = "crates/engine/src/";
    for source in sources_under(folder)
        .iter()
        .filter(|source| !source.is_test())
    {
        let path = source
            .name
            .strip_prefix(folder)
            .expect("a file of the engine");
        let part = path.split(['/', '.']).next().expect("a name");
        if SEE_ALL.contains(&part) {
            continue;
        }
        let row = MAY_NAME.iter().find(|(name, _)| *name == part);
        let (_, allowed) =
            row.unwrap_or_else(|| panic!("{}: '{part}' is not in the table", source.name));
        for other in source.code().flat_map(|(_, line)| named(line)) {
            let is_part = MAY_NAME.iter().any(|(name, _)| *name == other);
            if is_part && other != part && !allowed.contains(&other) {
                let files = found.entry(format!("{part} -> {other}")).or_default();
                files.insert(path.to_owned());
            }
        }
    }
    found
}

/// The list of [`AGAINST`] in the same form.
fn listed() -> BTreeMap<String, BTreeSet<String>> {
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut arrow = "";
    let lines = AGAINST.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            None => arrow = line,
            Some(file) => {
                let files = listed.entry(arrow.to_owned()).or_default();
                assert!(
                    files.insert(file.to_owned()),
                    "{arrow}: {file} is listed twice"
                );
            }
        }
    }
    listed
}

/// What one list has beyond the other.
fn beyond(
    one: &BTreeMap<String, BTreeSet<String>>,
    other: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<String> {
    let empty = BTreeSet::new();
    let of = |(arrow, files): (&String, &BTreeSet<String>)| {
        let known = other.get(arrow).unwrap_or(&empty);
        let files: Vec<_> = files
            .difference(known)
            .map(|file| format!("{arrow}: {file}"))
            .collect();
        files
    };
    one.iter().flat_map(of).collect()
}

#[test]
fn parts_of_the_engine_name_only_parts_beneath_them() {
    let (found, listed) = (uses_against(), listed());
    let new = beyond(&found, &listed);
    assert!(
        new.is_empty(),
        "the table does not allow these:\n{}",
        new.join("\n")
    );
    let gone = beyond(&listed, &found);
    assert!(
        gone.is_empty(),
        "these are gone, take them out of modules.txt:\n{}",
        gone.join("\n")
    );
}

#[test]
fn the_table_has_no_cycle() {
    for (at, (part, allowed)) in MAY_NAME.iter().enumerate() {
        for other in *allowed {
            let beneath = MAY_NAME.iter().position(|(name, _)| name == other);
            assert!(
                beneath.is_some_and(|beneath| beneath < at),
                "{part} -> {other}"
            );
        }
    }
}
