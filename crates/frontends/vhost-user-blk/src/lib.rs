//! The vhost-user-blk front end: a volume as a virtio disk of a virtual machine.
//!
//! Responsible for: the vhost-user control protocol on a Unix socket (one thread an export), the
//! virtio-blk requests of a guest's rings (tasks on the loops of the daemon), in-flight tracking
//! so that a guest outlives its storage daemon, and the notification of a new size.
//! Leaves out: what happens to the operations. It knows a [`block::BlockDevice`] and nothing of
//! the engine.
//!
//! What is trusted: nothing of the guest. Each header and descriptor is copied once and then
//! checked, and data are only ever copied through raw pointers. Of the virtual machine monitor that
//! connects to the socket nothing that could stop or starve others: it shares files in memory alone
//! (`shared.rs`), may cut them short (`fault.rs`), and its event descriptors are neither read nor
//! written (`event.rs`). What it can do is everything that a guest may do to this volume, so the
//! socket's permissions decide who is allowed that.

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
