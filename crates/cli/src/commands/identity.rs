//! `convect reidentify`: gives a copy of an offline pool new identities. Works without a daemon.

use super::check::{drives, not_looked};
use crate::Failure;
use crate::arguments::Reidentify;
use crate::confirm::confirm;
use crate::show::print;

/// `convect reidentify`.
///
/// # Errors
/// When the drives are not the complete set of one copy, are in use, or cannot be written.
pub fn reidentify(json: bool, options: &Reidentify) -> Result<(), Failure> {
    let drives = drives(&options.drives)?;
    let what = "Hosts will no longer recognise these drives as the original pool; make sure that \
    the original is on other drives";
    confirm(what, "copy", options.yes)?;
    let renewed = inspect::renew(&drives, options.name.as_deref()).map_err(not_looked)?;
    if json {
        let drives: Vec<_> = renewed
            .drives
            .iter()
            .map(|(spec, id)| serde_json::json!({ "spec": spec, "id": id.to_string() }))
            .collect();
        let told = serde_json::json!({
            "pool": renewed.name,
            "id": renewed.new.to_string(),
            "was": renewed.old.to_string(),
            "drives": drives,
        });
        return print(&format!("{told}\n"));
    }
    let mut text = format!(
        "Pool {}: new id {}, previous id {}.\n",
        renewed.name, renewed.new, renewed.old
    );
    for (spec, id) in &renewed.drives {
        text.push_str(&format!("  {spec}: drive {id}\n"));
    }
    print(&text)
}
