//! Changes that are made only of what the caller saw: `If-Match` (RFC 9110, section 13.1.1). Changes of one object
//! take turns, so that nothing comes between the look and the change.

use super::dispatch::Arguments;
use super::tags::Tag;
use crate::Manager;
use api::v1::{Problem, ProblemCode};
use api::{Operation, Tagged};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Objects share so many turns.
const TURNS: usize = 64;

/// Turns of objects. Each is taken before the manager is asked for anything.
pub struct Turns([Mutex<()>; TURNS]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl Turns {
    /// The turn of the object that an operation changes; nothing where that has no tag.
    pub fn take(&self, operation: Operation, with: &Arguments) -> Option<MutexGuard<'_, ()>> {
        let tagged = operation.changes_tagged()?;
        let mut hasher = DefaultHasher::new();
        // An export is meant whether its pool is named or not.
        (tagged, &with.path).hash(&mut hasher);
        let turn = &self.0[(hasher.finish() % TURNS as u64) as usize];
        Some(turn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether one of the entity tags in a header is this one. Weak ones never are.
fn matches(header: &str, tag: &str) -> bool {
    header.trim() == "*" || header.split(',').any(|one| one.trim() == tag)
}

/// Refuses a change of an object that is not as the caller saw it. The object's turn is held.
///
/// # Errors
/// Then, when there is no such object, and where the operation takes no condition.
pub fn check(manager: &Manager, operation: Operation, with: &Arguments) -> Result<(), Problem> {
    let Some(header) = &with.if_match else {
        return Ok(());
    };
    let Some(tagged) = operation.changes_tagged() else {
        return Err(Problem::invalid(format!(
            "{operation:?} cannot be made to depend on a tag: leave If-Match out"
        )));
    };
    let text = |name: &str| with.path.get(name).map_or("", String::as_str);
    let object = (text("pool"), text("volume"), text("snapshot"));
    let of = with.query.get("pool").map(String::as_str);
    let (pool, volume) = (object.0, object.1);
    let now = match tagged {
        Tagged::Pool => manager.pools.show(pool)?.tag(),
        Tagged::Volume => manager.volumes.show(pool, volume)?.tag(),
        Tagged::Snapshot => manager.snapshots.show(object)?.tag(),
        Tagged::Export => manager.exports.show(text("export"), of)?.tag(),
    };
    match matches(header, &now) {
        true => Ok(()),
        false => Err(Problem::new(
            ProblemCode::Changed,
            "it was changed since you looked, and nothing was done: look again, and send what is to be changed with \
             the ETag of that",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_the_tags_has_to_be_the_one_that_is() {
        for (header, same) in [
            ("\"a\"", true),
            ("\"b\", \"a\"", true),
            (" * ", true),
            ("W/\"a\"", false),
            ("\"b\"", false),
            ("a", false),
            ("", false),
            ("\"\"", false),
        ] {
            assert_eq!(matches(header, "\"a\""), same, "{header}");
        }
    }
}
