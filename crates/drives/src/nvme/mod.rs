//! NVMe namespaces, by commands that go past the block layer.

mod command;
mod drive;
mod namespace;
mod queue;

pub(crate) use drive::KIND;
