//! Table of protocols, and validation of export parameters.

use api::v1::Problem;
use reactor::FrontEnd;
use std::collections::BTreeMap;

/// Every protocol: add a row to add one.
pub const FRONT_ENDS: &[FrontEnd] = &[
    frontend_vhost_user_blk::FRONT_END,
    frontend_nbd::FRONT_END,
    frontend_fuse::FRONT_END,
    frontend_iscsi::FRONT_END,
];

/// Maximum length of a parameter's value, in bytes.
const VALUE_MAX: usize = 4096;
/// Maximum number of host names resolved ahead per export.
const LOOKUPS_MAX: usize = 16;

fn names(of: impl Iterator<Item = &'static str>) -> String {
    of.collect::<Vec<_>>().join(", ")
}

/// The row named `kind`.
pub fn find(rows: &'static [FrontEnd], kind: &str) -> Result<&'static FrontEnd, Problem> {
    rows.iter().find(|row| row.name == kind).ok_or_else(|| {
        Problem::invalid(format!(
            "unknown protocol '{kind}': choose one of {}",
            names(rows.iter().map(|row| row.name))
        ))
    })
}

/// Validates the parameters against the row.
pub fn check(row: &FrontEnd, parameters: &BTreeMap<String, String>) -> Result<(), Problem> {
    for (name, value) in parameters {
        if !row.parameters.iter().any(|known| known.name == name) {
            let known = names(row.parameters.iter().map(|known| known.name));
            return Err(Problem::invalid(format!(
                "protocol {} has no parameter '{name}': it has {known}",
                row.name
            )));
        }
        if value.len() > VALUE_MAX || value.contains(['\0', '\n']) {
            return Err(Problem::invalid(format!(
                "the value of parameter '{name}' is invalid: write one line of at most \
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
            "protocol {} requires the parameter '{}': {}",
            row.name, missing.name, missing.about
        ))),
        None => Ok(()),
    }
}

/// Resolves the host names in an export's parameters ahead of its start. This may take seconds, so
/// no lock may be held. Failures are reported when the export starts.
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
