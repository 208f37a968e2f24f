//! The rules of the architecture, a file a subject.

mod dependencies;
mod programs;
mod sources;
