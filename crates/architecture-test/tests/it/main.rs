//! The rules of the architecture, a file a subject.

mod blocking;
mod dependencies;
mod programs;
mod sources;
