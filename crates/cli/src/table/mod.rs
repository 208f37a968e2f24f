//! Tables: what a list's columns are, which of them are shown, and how they fit a terminal.
//!
//! A list declares its columns once ([`Column`]): header, alignment and a function from an object to
//! a [`Value`], which knows both what a person reads and what a script or the sorting needs. Choosing
//! columns, sorting, patterns and the output for scripts work on that declaration, for all lists
//! alike ([`Listing`]). [`layout`] places texts in columns; where the output is a terminal, it cuts
//! and drops cells so that no line wraps.

mod column;
mod layout;
mod listing;
mod pattern;
mod plain;
mod value;

pub use column::{Column, Get};
pub use layout::{Head, layout};
pub use listing::Listing;
pub use pattern::Pattern;
pub use plain::{STATES, table};
pub use value::Value;
