//! Reads the workspace's own sources and manifests for the tests of its architecture.
//!
//! Responsible for: what a crate depends on, which of its modules use which, and what a source file says once comments and
//! test modules are set aside.
//! Leaves out: the rules themselves, which are the tests in `tests/`, a file a subject.

mod manifest;
mod modules;
mod source;
mod workspace;

pub use manifest::Manifest;
pub use modules::{Cycles, Modules};
pub use source::{Source, mentions};
pub use workspace::{root, sources_under, workspace_crates};
