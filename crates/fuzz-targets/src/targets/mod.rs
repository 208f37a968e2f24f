//! One file for each target, and [`scsi_unit`] for those that need a SCSI unit.

pub(crate) mod checkpoint;
pub(crate) mod chunk;
pub(crate) mod config;
pub(crate) mod homes;
pub(crate) mod iscsi_login;
pub(crate) mod iscsi_session;
pub(crate) mod journal;
pub(crate) mod label;
pub(crate) mod nbd_option;
pub(crate) mod nbd_request;
pub(crate) mod node;
pub(crate) mod record;
pub(crate) mod reservations;
pub(crate) mod scsi_commands;
pub(crate) mod scsi_reservations;
mod scsi_unit;
pub(crate) mod slots;
pub(crate) mod stream;
pub(crate) mod volume;
