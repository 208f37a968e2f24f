//! Conditional changes: `If-Match` (RFC 9110, section 13.1.1). Changes of one object are
//! serialised, so that nothing changes between the check and the change.

use super::dispatch::Arguments;
use super::tags::Tag;
use crate::Manager;
use api::v1::{Problem, ProblemCode};
use api::{Operation, Tagged};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of locks that the objects share (striped).
const TURNS: usize = 64;

/// Striped locks of objects, always taken before the manager is called.
pub struct Turns([Mutex<()>; TURNS]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl Turns {
    /// Locks the object that an operation changes; nothing where it has no entity tag.
    pub fn take(&self, operation: Operation, with: &Arguments) -> Option<MutexGuard<'_, ()>> {
        let tagged = operation.changes_tagged()?;
        let mut hasher = DefaultHasher::new();
        // An export is the same object with and without its pool's name.
        (tagged, &with.path).hash(&mut hasher);
        let turn = &self.0[(hasher.finish() % TURNS as u64) as usize];
        Some(turn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a header contains this entity tag. Weak tags never match.
fn matches(header: &str, tag: &str) -> bool {
    header.trim() == "*" || header.split(',').any(|one| one.trim() == tag)
}

/// Checks the precondition of a change while the object is locked.
///
/// # Errors
/// When it is not met, the object does not exist, or the operation takes no precondition.
pub fn check(manager: &Manager, operation: Operation, with: &Arguments) -> Result<(), Problem> {
    let Some(header) = &with.if_match else {
        return Ok(());
    };
    let Some(tagged) = operation.changes_tagged() else {
        return Err(Problem::invalid(format!(
            "{operation:?} does not support preconditions: remove the If-Match header"
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
            "the object was changed since you read it, and nothing was done: read it again, and \
             repeat the change with the new ETag",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precondition_requires_a_matching_tag() {
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
