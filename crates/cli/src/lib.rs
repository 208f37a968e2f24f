//! The command line client of the daemon, and `convect serve`, which runs the daemon.
//!
//! Responsible for: arguments, help, manual pages, confirmation, tables, progress, JSON output of the
//! HTTP API.
//! Leaves out: all decisions about pools, volumes and exports, which the daemon makes.

mod access_arguments;
mod arguments;
mod client;
mod colour;
mod commands;
mod confirm;
mod context_arguments;
mod drive_arguments;
mod error;
mod event_arguments;
mod examples;
mod exit_codes;
mod export_arguments;
mod grammar;
mod iostat;
mod job_arguments;
mod list_arguments;
mod manual;
mod map;
mod map_arguments;
mod parse;
mod placement_arguments;
mod pool_arguments;
mod progress;
mod qos_arguments;
mod run;
mod schedule_arguments;
mod serve_arguments;
mod server_arguments;
mod show;
mod stream_arguments;
mod table;
mod target_arguments;
mod terminal;
mod top;
mod transport;
mod visible;
mod why_arguments;

pub use arguments::Arguments;
pub use client::Client;
pub use error::Failure;
pub use examples::examples;
pub use exit_codes::exit_codes;
pub use grammar::{grammar, parse_line};
pub use iostat::{Load, load_line};
pub use map::{Paint, cells_then, legend, strip};
pub use parse::{drive_spec, front_end_parameters, object, search_folders, vdrives};
pub use run::main;
pub use transport::{DaemonSelection, Environment, Transport, choose};
