//! The vhost-user-blk front end: a volume as a virtio disk of a virtual machine.
//!
//! Responsible for: the vhost-user control protocol on a Unix socket (one thread an export), the
//! virtio-blk requests of a guest's rings (tasks on the loops of the daemon), in-flight tracking
//! so that a guest outlives its storage daemon, and the notification of a new size.
//! Leaves out: what happens to the operations. It knows a [`block::BlockDevice`] and nothing of
//! the engine.
//!
//! What is trusted: nothing of the guest. Each header and descriptor is copied once and then
//! checked, and data are only ever copied through raw pointers. The virtual machine monitor that
//! connects to the socket shares its memory by descriptors, and two things that it could do to
//! them cannot be checked beforehand: cutting the memory file short while it is in use raises
//! SIGBUS in this process, and clearing `O_NONBLOCK` of an event descriptor that it also fills
//! can stall a loop. So the socket must only be reachable for monitors that run with the rights
//! that the daemon would give them; its file permissions decide that.

mod ahead;
mod chain;
mod config;
mod control;
mod event;
mod export;
mod guest;
mod inflight;
mod memory;
mod notify;
mod parts;
mod polling;
mod request;
mod ring;
mod server;
mod session;
mod status;
mod volume;
mod vring;

pub use export::FRONT_END;
