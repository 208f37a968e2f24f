//! Manual pages: one of section 1 for each command, and convect.toml(5).
//!
//! Names, options and subcommands come from the grammar, examples and exit codes from their tables, the
//! settings of the daemon from the example configuration that packages install.

mod command;
mod configuration;
mod environment;
mod page;
mod pages;

pub use pages::pages;
