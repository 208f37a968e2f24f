//! The iSCSI target, as initiators see it.

mod access;
mod connections;
mod direct;
mod hostile;
mod identity;
mod integrity;
mod interleavings;
mod kept;
mod offload;
mod replay;
mod rights;
mod session;
mod support;
mod vast;
