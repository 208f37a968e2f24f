//! The rules of the architecture, a file a subject.

mod blocking;
mod dependencies;
mod parts;
mod programs;
mod sources;
