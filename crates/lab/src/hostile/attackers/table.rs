//! All attackers.

use super::{
    computes, http_live_streams, http_random, http_silent_control, http_silent_tls,
    http_slow_bodies, http_wrong_tokens, iscsi_nop_flood, iscsi_random, iscsi_reinstatement,
    iscsi_silent, iscsi_unread_reads, iscsi_whole_volume, iscsi_wrong_names, metrics_silent,
    metrics_slow_readers, nbd_dies_at_work, nbd_endless_options, nbd_random, nbd_silent,
    nbd_slow_reader, vhost_bad_call, vhost_broken_ring, vhost_crossing_regions, vhost_cut_memory,
    vhost_long_chains, vhost_random_ring, vhost_silent,
};
use crate::hostile::stage::Stage;

/// One kind of a hostile peer.
#[derive(Debug)]
pub struct Attacker {
    /// Its name, which begins with its protocol, if it has one.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Does it until the stage is over.
    pub attack: fn(&Stage<'_>),
}

const fn row(name: &'static str, attack: fn(&Stage<'_>), about: &'static str) -> Attacker {
    Attacker {
        name,
        about,
        attack,
    }
}

/// In the order in which they come.
pub static ALL: &[Attacker] = &[
    row(
        "computes",
        computes::attack,
        "Control: uses all cores and asks for nothing; what it costs others is no doing of the daemon",
    ),
    row(
        "nbd-slow-reader",
        nbd_slow_reader::attack,
        "Many connections ask for 32 MiB again and again and read nothing",
    ),
    row(
        "nbd-dies-at-work",
        nbd_dies_at_work::attack,
        "Asks for block status, zeroes and reads of everything and closes, in a loop",
    ),
    row(
        "nbd-silent",
        nbd_silent::attack,
        "As many connections as it gets, before any option",
    ),
    row(
        "nbd-random",
        nbd_random::attack,
        "Random options and requests",
    ),
    row(
        "nbd-endless-options",
        nbd_endless_options::attack,
        "Options without end, and never an export",
    ),
    row(
        "iscsi-nop-flood",
        iscsi_nop_flood::attack,
        "NOP-Out with the longest data, and the answers unread",
    ),
    row(
        "iscsi-silent",
        iscsi_silent::attack,
        "As many connections as it gets, before login",
    ),
    row(
        "iscsi-wrong-names",
        iscsi_wrong_names::attack,
        "Log-ins with wrong names, in a loop",
    ),
    row(
        "iscsi-random",
        iscsi_random::attack,
        "Random PDUs after a right login",
    ),
    row(
        "iscsi-unread-reads",
        iscsi_unread_reads::attack,
        "Big reads whose data are unread",
    ),
    row(
        "iscsi-whole-volume",
        iscsi_whole_volume::attack,
        "GET LBA STATUS, UNMAP, WRITE SAME, VERIFY and SANITIZE of everything of a big thin unit",
    ),
    row(
        "iscsi-reinstatement",
        iscsi_reinstatement::attack,
        "Takes its own session over again and again",
    ),
    row(
        "vhost-broken-ring",
        vhost_broken_ring::attack,
        "Breaks its ring, connects again, in a loop",
    ),
    row(
        "vhost-long-chains",
        vhost_long_chains::attack,
        "Chains longer than seg_max, and loops",
    ),
    row(
        "vhost-random-ring",
        vhost_random_ring::attack,
        "Random descriptors and indexes",
    ),
    row(
        "vhost-silent",
        vhost_silent::attack,
        "Monitors that connect and say nothing",
    ),
    row(
        "vhost-bad-call",
        vhost_bad_call::attack,
        "Notification descriptors that are full, or of another kind",
    ),
    row(
        "vhost-cut-memory",
        vhost_cut_memory::attack,
        "Memory, and that of requests in flight, cut short while it is used",
    ),
    // The last one of an export, which has one monitor at a time: what it requested is carried out for a while after it.
    row(
        "vhost-crossing-regions",
        vhost_crossing_regions::attack,
        "64 MiB requests that cross regions of the volume and of the memory, at full depth",
    ),
    row(
        "http-wrong-tokens",
        http_wrong_tokens::attack,
        "Log-ins with wrong tokens, from one address after the other",
    ),
    row(
        "http-silent-tls",
        http_silent_tls::attack,
        "As many TLS connections as it gets, before the handshake",
    ),
    row(
        "http-silent-control",
        http_silent_control::attack,
        "As many connections to the control socket as it gets",
    ),
    row(
        "http-live-streams",
        http_live_streams::attack,
        "All live streams that one viewer gets",
    ),
    row(
        "http-slow-bodies",
        http_slow_bodies::attack,
        "Headers and bodies that are huge or slow",
    ),
    row(
        "http-random",
        http_random::attack,
        "Random requests of a viewer, and bytes that are no requests",
    ),
    row(
        "metrics-silent",
        metrics_silent::attack,
        "As many connections to the metrics as it gets",
    ),
    row(
        "metrics-slow-readers",
        metrics_slow_readers::attack,
        "Asks for the metrics and reads nothing, as often as it may",
    ),
];

/// The attacker of a name.
///
/// # Errors
/// When there is none; with all names.
pub fn find(name: &str) -> Result<&'static Attacker, String> {
    let found = ALL.iter().find(|attacker| attacker.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|attacker| attacker.name).collect();
        format!("there is no such attacker: write {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_attacked_and_names_are_unique() {
        for protocol in ["nbd-", "iscsi-", "vhost-", "http-", "metrics-"] {
            assert!(
                ALL.iter()
                    .any(|attacker| attacker.name.starts_with(protocol))
            );
        }
        for attacker in ALL {
            assert!(std::ptr::eq(
                find(attacker.name).expect("its own name"),
                attacker
            ));
        }
        assert!(
            find("nobody")
                .expect_err("no attacker")
                .contains("nbd-silent")
        );
    }
}
