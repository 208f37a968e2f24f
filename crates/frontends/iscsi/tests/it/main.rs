//! The iSCSI target from the initiators' perspective.

mod access;
mod connections;
mod crowds;
mod direct;
mod hostile;
mod identity;
mod integrity;
mod interleavings;
mod kept;
mod memory;
mod names;
mod offload;
mod random;
mod replay;
mod rights;
mod session;
mod support;
mod vast;
