//! Which measurement is requested.

use super::arguments::{Promise, Promises};
use super::{alone, background, fairness, filling, infeasible, live, many};
use crate::failure::Result;
use std::path::Path;

/// Measures what was requested.
///
/// # Errors
/// When something cannot be measured.
pub fn run(convect: &Path, with: &Promises) -> Result<()> {
    println!("  {}", crate::machine::describe());
    match &with.which {
        Promise::Infeasible(with) => infeasible::run(convect, with),
        Promise::Alone(with) => alone::run(convect, with),
        Promise::Fairness(with) => fairness::run(convect, with),
        Promise::Live(with) => live::run(convect, with),
        Promise::Background(with) => background::run(convect, with),
        Promise::Filling(with) => filling::run(convect, with),
        Promise::Many(with) => many::run(convect, with),
    }
}
