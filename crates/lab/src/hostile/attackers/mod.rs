//! Attackers: a row of a table each, and a file.

mod computes;
mod http_live_streams;
mod http_random;
mod http_silent_control;
mod http_silent_tls;
mod http_slow_bodies;
mod http_wrong_tokens;
mod iscsi_nop_flood;
mod iscsi_random;
mod iscsi_reinstatement;
mod iscsi_silent;
mod iscsi_unread_reads;
mod iscsi_whole_volume;
mod iscsi_wrong_names;
mod metrics_silent;
mod metrics_slow_readers;
mod nbd_dies_at_work;
mod nbd_endless_options;
mod nbd_random;
mod nbd_silent;
mod nbd_slow_reader;
mod table;
mod vhost_bad_call;
mod vhost_broken_ring;
mod vhost_crossing_regions;
mod vhost_cut_memory;
mod vhost_long_chains;
mod vhost_random_ring;
mod vhost_silent;

pub use table::{ALL, Attacker, find};
