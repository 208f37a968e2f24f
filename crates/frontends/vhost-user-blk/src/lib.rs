//! vhost-user-blk: a volume as a virtio disk of a virtual machine.
//!
//! Responsible for: the vhost-user control protocol on a Unix socket (one thread per export),
//! virtio-blk requests of the guest's rings (tasks on the daemon's event loops), in-flight tracking
//! so that a guest survives a restart of the daemon, and notification of resizes.
//! Leaves out: execution of the operations. It uses a [`block::BlockDevice`] and does not depend on
//! the engine.
//!
//! Trust: the guest is untrusted. Each header and descriptor is copied once and then validated, and
//! data is only accessed through raw pointers. The virtual machine monitor cannot block or starve
//! other exports: only files in memory may be shared (`shared.rs`), truncation is survived
//! (`fault.rs`), and its event descriptors are neither read nor written (`event.rs`). It can do
//! everything to the volume that a guest can, so the socket's permissions control access.

mod ahead;
mod chain;
mod config;
mod control;
mod event;
mod export;
mod fault;
mod guest;
mod inflight;
mod log;
mod memory;
mod notify;
mod parts;
mod peek;
mod polling;
mod request;
mod ring;
mod server;
mod session;
mod shared;
mod status;
mod volume;
mod vring;
mod zeroing;

pub use export::FRONT_END;
