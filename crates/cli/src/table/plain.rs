//! Tables that are no lists of objects: texts below headers.

use super::{Head, layout};
use crate::colour;
use crate::terminal::width;

/// Headers of the columns with states.
pub const STATES: [&str; 3] = ["STATE", "HEALTH", "SEVERITY"];

/// A table that is no list; columns whose header begins with `>` are right-aligned. It fits the
/// terminal; states may have colours: they are printed by [`crate::show::print_styled`].
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let heads = head.iter().enumerate().map(|(index, name)| {
        let header = name.trim_start_matches('>');
        Head {
            header: header.to_owned(),
            right: name.starts_with('>'),
            kept: index == 0 || STATES.contains(&header),
            state: STATES.contains(&header),
        }
    });
    let heads: Vec<Head> = heads.collect();
    layout(&heads, &rows, width(), colour::is_enabled())
}
