//! New identities for a copy of a pool's drives. No daemon is asked.

use super::check::{drives, not_looked};
use crate::Failure;
use crate::arguments::Reidentify;
use crate::confirm::confirm;
use crate::show::print;

/// `convect reidentify`.
///
/// # Errors
/// When the drives are not all drives of one copy, are in use, or cannot be written.
pub fn reidentify(json: bool, options: &Reidentify) -> Result<(), Failure> {
    let drives = drives(&options.drives)?;
    let what = "Hosts will not know these drives as the pool that they are now; the original has to be elsewhere";
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
        "Pool {} is {} now; it was {}.\n",
        renewed.name, renewed.new, renewed.old
    );
    for (spec, id) in &renewed.drives {
        text.push_str(&format!("  {spec}: drive {id}\n"));
    }
    print(&text)
}
