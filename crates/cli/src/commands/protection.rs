//! How many drive failures data survives, as text.

use crate::table::Value;
use api::v1::{Pool, Protection, Vdrive};

fn failures(count: u32) -> String {
    match count {
        1 => "the failure of any drive".to_owned(),
        count => format!("any {count} drive failures"),
    }
}

/// One line about the protection of a pool or volume; empty if the daemon does not report it.
pub fn line(protection: Option<Protection>) -> String {
    let Some(Protection {
        survives_failures: now,
        by_design,
    }) = protection
    else {
        return String::new();
    };
    match (now, by_design) {
        (_, 0) => "no redundancy: the failure of a drive loses data".to_owned(),
        (0, _) => format!(
            "at risk: the next drive failure may lose data; survives {} once all mirrors are complete",
            failures(by_design)
        ),
        (now, by_design) if now < by_design => format!(
            "survives {}, and {} once all mirrors are complete",
            failures(now),
            failures(by_design)
        ),
        (now, _) => format!("survives {}", failures(now)),
    }
}

/// State of a pool, which without redundancy is never only `online`.
pub fn state(pool: &Pool) -> String {
    match pool.protection {
        Some(Protection { by_design: 0, .. }) => format!("{}, no redundancy", pool.state),
        _ => pool.state.clone(),
    }
}

/// The number of failures for a table.
pub fn number(protection: Option<Protection>) -> String {
    protection.map_or("-".to_owned(), |known| known.survives_failures.to_string())
}

/// The same with its exact value.
pub fn value(protection: Option<Protection>) -> Value {
    let count = protection.map(|known| Value::count(known.survives_failures));
    Value::or(count, "-")
}

/// A warning about vdrives without redundancy, of a new pool or a new vdrive; none if there are
/// none.
pub fn warning(pool: &str, vdrives: &[Vdrive]) -> Option<String> {
    let bare = |vdrive: &&Vdrive| vdrive.protection.is_some_and(|known| known.by_design == 0);
    let numbers: Vec<String> = vdrives
        .iter()
        .filter(bare)
        .map(|vdrive| vdrive.id.to_string())
        .collect();
    let (which, which_has) = match numbers.as_slice() {
        [] => return None,
        [_] => ("vdrive", "has"),
        _ => ("vdrives", "have"),
    };
    Some(format!(
        "{which} {} of pool {pool} {which_has} no redundancy: the failure of one drive loses data of all \
         volumes; use the layout mirror for data that matters",
        numbers.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_says_what_survives_now_and_what_is_missing() {
        let told = |survives_failures, by_design| {
            line(Some(Protection {
                survives_failures,
                by_design,
            }))
        };
        assert_eq!(told(1, 1), "survives the failure of any drive");
        assert_eq!(told(2, 2), "survives any 2 drive failures");
        assert!(told(0, 0).starts_with("no redundancy"));
        assert!(told(0, 1).starts_with("at risk"));
        assert!(told(1, 2).contains("and any 2 drive failures once"));
        assert_eq!(line(None), "");
    }
}
