//! The table of front ends, and the check of what an export asks of one.

use api::v1::Problem;
use reactor::FrontEnd;
use std::collections::BTreeMap;

/// Every front end: adding one is a row.
pub const FRONT_ENDS: &[FrontEnd] = &[
    frontend_vhost_user_blk::FRONT_END,
    frontend_nbd::FRONT_END,
    frontend_fuse::FRONT_END,
    frontend_iscsi::FRONT_END,
];

/// Longest value of a parameter, in bytes.
const VALUE_MAX: usize = 4096;
/// Names of hosts of one export that are looked up ahead.
const LOOKUPS_MAX: usize = 16;

fn names(of: impl Iterator<Item = &'static str>) -> String {
    of.collect::<Vec<_>>().join(", ")
}

/// The row called `kind`.
pub fn find(rows: &'static [FrontEnd], kind: &str) -> Result<&'static FrontEnd, Problem> {
    rows.iter().find(|row| row.name == kind).ok_or_else(|| {
        Problem::invalid(format!(
            "unknown protocol '{kind}': choose one of {}",
            names(rows.iter().map(|row| row.name))
        ))
    })
}

/// Checks the parameters against the row.
pub fn check(row: &FrontEnd, parameters: &BTreeMap<String, String>) -> Result<(), Problem> {
    for (name, value) in parameters {
        if !row.parameters.iter().any(|known| known.name == name) {
            let known = names(row.parameters.iter().map(|known| known.name));
            return Err(Problem::invalid(format!(
                "the front end {} has no parameter '{name}': it has {known}",
                row.name
            )));
        }
        if value.len() > VALUE_MAX || value.contains(['\0', '\n']) {
            return Err(Problem::invalid(format!(
                "the parameter '{name}' has a value that cannot be: write one line of at most \
                 {VALUE_MAX} bytes"
            )));
        }
    }
    let missing = row
        .parameters
        .iter()
        .find(|known| known.required && !parameters.contains_key(known.name));
    match missing {
        Some(missing) => Err(Problem::invalid(format!(
            "the front end {} needs the parameter '{}': {}",
            row.name, missing.name, missing.about
        ))),
        None => Ok(()),
    }
}

/// Looks up the names of hosts that an export's parameters have, so that starting it finds them known. This may take
/// seconds: nothing that others need is to be locked. What is not found is told when the export is started.
pub fn look_up(kind: &str, parameters: &BTreeMap<String, String>) {
    let names: Vec<&str> = match kind {
        "nbd" => parameters
            .get("listen")
            .and_then(|at| at.strip_prefix("tcp:")),
        "iscsi" => parameters.get("portal").map(String::as_str),
        _ => None,
    }
    .map(|names| names.split(',').take(LOOKUPS_MAX).collect())
    .unwrap_or_default();
    for name in names {
        let _ = reactor::resolve(name);
    }
}
