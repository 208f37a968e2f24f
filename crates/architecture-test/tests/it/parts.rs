//! Crates made of parts: no type that everything belongs to, and no two modules that need each other.
//!
//! A crate that is listed here must keep the limits below. Exceptions are listed with their present figure: it
//! may only fall, and when it does, the figure here falls with it.

use architecture_test::{Modules, root, sources_under};
use std::collections::{BTreeMap, BTreeSet};

/// The most fields of a struct.
const FIELDS_MAX: usize = 25;
/// The most files in which a type has methods.
const FILES_MAX: usize = 4;

/// A crate that is made of parts.
struct Crate {
    folder: &'static str,
    /// Structs that have more fields.
    fields: &'static [(&'static str, usize)],
    /// Types that have methods in more files.
    files: &'static [(&'static str, usize)],
    /// Modules of which children use each other in circles: how many children do.
    cycles: &'static [(&'static str, usize)],
}

const CRATES: &[Crate] = &[
    Crate {
        folder: "crates/daemon/src",
        fields: &[],
        files: &[],
        cycles: &[],
    },
    Crate {
        folder: "crates/engine/src",
        fields: &[("control::types::PoolStatus", 27)],
        files: &[
            ("pool::state::Pool", 34),
            ("shard::state::Shard", 62),
            ("shard::state::State", 12),
            ("vdrive::device::VdriveIo", 6),
        ],
        cycles: &[
            ("crate::", 15),
            ("crate::control", 6),
            ("crate::device", 2),
            ("crate::io", 2),
            ("crate::map", 2),
            ("crate::pool", 21),
            ("crate::shard", 5),
            ("crate::vdrive", 7),
        ],
    },
];

fn modules(of: &Crate) -> Modules {
    let sources = sources_under(of.folder);
    assert!(!sources.is_empty(), "{} has no sources", of.folder);
    Modules::of(of.folder, &sources)
}

fn name(path: &[String], last: &str) -> String {
    [path.join("::"), last.to_owned()].join("::")
}

/// Compares what is above a limit with the exceptions.
#[track_caller]
fn check(what: &str, found: BTreeMap<String, usize>, known: &[(&str, usize)]) {
    let known = known
        .iter()
        .map(|(name, figure)| ((*name).to_owned(), *figure));
    assert_eq!(
        found,
        known.collect(),
        "{what}: left is what there is, right what parts.rs allows; divide what is new, and lower what fell"
    );
}

#[test]
fn no_struct_has_more_than_25_fields() {
    for of in CRATES {
        let fields = modules(of).fields().into_iter();
        let over = fields.filter(|(_, count)| *count > FIELDS_MAX);
        let over = over.map(|((path, last), count)| (name(&path, &last), count));
        check("fields", over.collect(), of.fields);
    }
}

#[test]
fn no_type_has_methods_in_more_than_4_files() {
    for of in CRATES {
        let impls = modules(of).impls().into_iter();
        let over = impls.filter(|(_, files)| files.len() > FILES_MAX);
        let over = over.map(|((path, last), files)| (name(&path, &last), files.len()));
        check("files with methods", over.collect(), of.files);
    }
}

#[test]
fn no_siblings_use_each_other_in_a_circle() {
    for of in CRATES {
        let cycles = modules(of).cycles();
        let over = cycles.iter().map(|(path, circles)| {
            let children = circles.iter().map(BTreeSet::len);
            (
                name(&["crate".to_owned()], &path.join("::")),
                children.sum(),
            )
        });
        let over: BTreeMap<String, usize> = over.collect();
        if !over.is_empty() {
            println!("{}: {cycles:?}", of.folder);
        }
        check("children in circles", over, of.cycles);
    }
}

/// The rows of a module head's table of parts: their names, and what each may see.
fn table(head: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = head.lines().filter_map(|line| line.strip_prefix("//! | `"));
    rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let sees: BTreeSet<String> = cells[2]
            .split(", ")
            .filter(|name| *name != "–")
            .map(str::to_owned)
            .collect();
        let parts = cells[0]
            .split(", ")
            .map(|part| part.trim_matches('`').to_owned());
        parts
            .map(move |part| (part, sees.clone()))
            .collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn parts_of_the_manager_see_what_the_table_at_their_head_says() {
    let head = root().join("crates/daemon/src/manager/mod.rs");
    let table = table(&std::fs::read_to_string(head).expect("a module head"));
    assert!(table.len() > 20, "the table is gone: {table:?}");
    let edges = modules(&CRATES[0]).edges();
    let mut beyond = Vec::new();
    for (part, used) in &edges[&vec!["manager".to_owned()]] {
        // Helpers, which are no parts, are left out: they have no state.
        let used: BTreeSet<_> = used
            .iter()
            .filter(|name| table.contains_key(*name))
            .collect();
        match table.get(part) {
            Some(sees) if used.iter().copied().eq(sees) => {}
            Some(sees) => beyond.push(format!("{part} uses {used:?}, and its row says {sees:?}")),
            None if part == "core" || used.is_empty() => {}
            None => beyond.push(format!("{part} is no part and uses {used:?}")),
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}
