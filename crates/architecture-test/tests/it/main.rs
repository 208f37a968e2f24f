//! The rules of the architecture, a file a subject.

mod blocking;
mod dependencies;
mod modules;
mod parts;
mod programs;
mod sources;
mod words;
