//! Reservation commands of three initiators to one unit, checked against what SPC-4 requires of every
//! state.
//!
//! The input is steps of six bytes: initiator, action, key, new key (or the one to preempt), type,
//! flags. After each step all initiators must be told the same, a reservation must have a holder, and
//! no initiator may write that the reservation excludes.

use super::scsi_unit::{data_out, frozen_loop, nexus, single_lun, unit};
use crate::memory::bounded;
use reactor::Handle;
use scsi::{Luns, Nexus, Status, Stop};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes of one step of the input.
const STEP: usize = 6;
/// Steps that are carried out.
const STEPS_MAX: usize = 64;
/// Initiators.
const NEXUSES: usize = 3;
/// Polls after which a command has hung.
const POLLS_MAX: usize = 100;
/// Unit attentions that an initiator may have at a time.
const ATTENTIONS_MAX: usize = 8;

struct Host {
    nexus: Rc<Nexus>,
    luns: Luns,
}

/// The reservation types (SPC-4 table 220).
const KINDS: [u8; 6] = [1, 3, 5, 6, 7, 8];

impl Host {
    /// Runs a command to its end: its status and data.
    fn run(&self, handle: &Handle, cdb: &[u8; 16], list: &[u8]) -> (Status, Vec<u8>) {
        let (generation, stop) = (self.nexus.generation(), Stop::default());
        let mut run = pin!(
            self.luns
                .execute(Some(0), cdb, data_out(list), generation, &stop)
        );
        for _ in 0..POLLS_MAX {
            let polled = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(response) = polled {
                let response = response.expect("only PREEMPT AND ABORT aborts a command");
                let data = response.data.as_bytes().unwrap_or(&[]).to_vec();
                return (response.status, data);
            }
            handle.run_ready(100);
        }
        panic!("a command does not complete");
    }

    /// What PERSISTENT RESERVE IN returns.
    fn report(&self, handle: &Handle, action: u8) -> Vec<u8> {
        let cdb = [0x5e, action, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
        // Without data when a unit attention or a conflict with RESERVE(6) is reported instead.
        self.run(handle, &cdb, &[]).1
    }
}

/// Registered keys, and key and type of the reservation.
struct ReservationReport {
    keys: Vec<u64>,
    held: Option<(u64, u8)>,
}

fn parse_report(keys: &[u8], held: &[u8]) -> ReservationReport {
    let word = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    ReservationReport {
        keys: keys[8..].chunks_exact(8).map(word).collect(),
        held: held.get(8..24).map(|entry| (word(&entry[..8]), entry[13])),
    }
}

fn clear_attentions(hosts: &[Host], handle: &Handle) {
    for host in hosts {
        for _ in 0..ATTENTIONS_MAX {
            if host.run(handle, &[0; 16], &[]).0 != Status::CheckCondition {
                break;
            }
        }
    }
}

fn check(hosts: &[Host], handle: &Handle) {
    clear_attentions(hosts, handle);
    let [keys, held] = [0, 1].map(|action| {
        let answers: Vec<Vec<u8>> = hosts
            .iter()
            .map(|host| host.report(handle, action))
            .filter(|answer| answer.len() >= 8)
            .collect();
        assert!(
            answers.windows(2).all(|two| two[0] == two[1]),
            "initiators are told different things"
        );
        answers.into_iter().next()
    });
    let (Some(keys), Some(held)) = (keys, held) else {
        return;
    };
    let ReservationReport { keys, held } = parse_report(&keys, &held);
    assert!(keys.len() <= NEXUSES && !keys.contains(&0));
    let write = |host: &Host| {
        let mut cdb = [0; 16];
        (cdb[0], cdb[8]) = (0x2a, 1);
        host.run(handle, &cdb, &[7; 512]).0
    };
    let may: Vec<bool> = hosts
        .iter()
        .map(|host| write(host) == Status::Good)
        .collect();
    let writers = may.iter().filter(|may| **may).count();
    let Some((key, kind)) = held else {
        return;
    };
    assert!(KINDS.contains(&kind), "type {kind}");
    assert!(!keys.is_empty(), "a reservation has a holder");
    match kind {
        // Only the holder may write (SPC-4 5.13.7).
        1 | 3 => {
            assert!(keys.contains(&key), "the holder is registered");
            assert!(writers <= 1, "{writers} initiators may write");
        }
        // Only registered initiators may write.
        _ => assert!(
            writers <= keys.len(),
            "{writers} initiators may write, {} are registered",
            keys.len()
        ),
    }
}

pub(crate) fn run(data: &[u8]) {
    bounded(16 << 20, || reservations(data));
}

fn reservations(data: &[u8]) {
    let Some(handle) = frozen_loop() else {
        return;
    };
    let shared = unit("reserved", 0);
    let hosts: Vec<Host> = ["iqn.a", "iqn.b", "iqn.c"]
        .into_iter()
        .map(|name| {
            let nexus = nexus(&handle, &shared, name);
            let luns = single_lun(&nexus);
            Host { nexus, luns }
        })
        .collect();
    for step in data.chunks_exact(STEP).take(STEPS_MAX) {
        let host = &hosts[usize::from(step[0]) % NEXUSES];
        let mut cdb = [0; 16];
        let mut list = [0; 24];
        match step[1] % 12 {
            action @ 0..=7 => {
                (cdb[0], cdb[1], cdb[8]) = (0x5f, action, 24);
                cdb[2] = step[4];
                list[7] = step[2] % 4;
                list[15] = step[3] % 4;
                list[20] = step[5];
            }
            8 => cdb[0] = 0x16,
            9 => cdb[0] = 0x17,
            _ => cdb[..6].copy_from_slice(step),
        }
        let list: &[u8] = if cdb[0] == 0x5f { &list } else { &[] };
        host.run(&handle, &cdb, list);
        check(&hosts, &handle);
    }
}
