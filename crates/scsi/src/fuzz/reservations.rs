//! Reservations of one unit by three initiators, held against what the standard promises of each state.

use super::{nexus, unit};
use crate::luns::Luns;
use crate::nexus::Nexus;
use crate::sense::Status;
use block::IoBuf;
use reactor::{Clock, Handle};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes of one step of the input.
const STEP: usize = 6;
/// Initiators.
const NEXUSES: usize = 3;
/// Times that a command is looked at until it has ended.
const POLLS_MAX: usize = 100;

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        0
    }
}

struct Host {
    nexus: Rc<Nexus>,
    luns: Luns,
}

/// The types that there are (SPC-4 table 220).
const KINDS: [u8; 6] = [1, 3, 5, 6, 7, 8];

impl Host {
    /// A command's status and data.
    fn run(&self, handle: &Handle, cdb: &[u8; 16], list: &[u8]) -> (Status, Vec<u8>) {
        let out = match list.is_empty() {
            true => IoBuf::empty(),
            false => IoBuf::from_bytes(list.into()),
        };
        let generation = self.nexus.generation();
        let mut run = pin!(self.luns.execute(Some(0), cdb, out, generation));
        for _ in 0..POLLS_MAX {
            let polled = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(response) = polled {
                let response = response.expect("nobody aborts it but by PREEMPT AND ABORT");
                let data = response.data.as_bytes().unwrap_or(&[]).to_vec();
                return (response.status, data);
            }
            handle.run_ready(100);
        }
        panic!("a command does not end");
    }

    /// What PERSISTENT RESERVE IN says.
    fn report(&self, handle: &Handle, action: u8) -> Vec<u8> {
        let cdb = [0x5e, action, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
        // An attention or a reservation by RESERVE(6) may come first.
        self.run(handle, &cdb, &[]).1
    }
}

/// The keys that are registered, and who holds what, where the answers are whole.
struct Seen {
    keys: Vec<u64>,
    held: Option<(u64, u8)>,
}

fn seen(keys: &[u8], held: &[u8]) -> Seen {
    let word = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    Seen {
        keys: keys[8..].chunks_exact(8).map(word).collect(),
        held: held.get(8..24).map(|entry| (word(&entry[..8]), entry[13])),
    }
}

fn clear_attentions(hosts: &[Host], handle: &Handle) {
    for host in hosts {
        for _ in 0..8 {
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
            "all initiators are told the same"
        );
        answers.into_iter().next()
    });
    let (Some(keys), Some(held)) = (keys, held) else {
        return;
    };
    let Seen { keys, held } = seen(&keys, &held);
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
        // One holder, who alone writes (SPC-4 5.13.7).
        1 | 3 => {
            assert!(keys.contains(&key), "the holder is registered");
            assert!(writers <= 1, "{writers} write");
        }
        // Whoever is registered writes, and nobody else.
        _ => assert!(writers <= keys.len(), "{writers} write, {} may", keys.len()),
    }
}

/// Carries out steps of six bytes: who, what, by which key, with which new key or which one to preempt, of what
/// type, with which flags.
///
/// # Panics
/// When initiators are told different things, a reservation has no holder, or somebody writes who may not.
pub fn reservations(data: &[u8]) {
    let Ok(handle) = Handle::simulated(Box::new(Still), 1) else {
        return;
    };
    let (device, shared) = unit("reserved", 0);
    let hosts: Vec<Host> = ["iqn.a", "iqn.b", "iqn.c"]
        .into_iter()
        .map(|name| {
            let nexus = Rc::new(nexus(&handle, &device, &shared, name));
            let luns = Luns::new(BTreeMap::from([(0, nexus.clone())]));
            Host { nexus, luns }
        })
        .collect();
    for step in data.chunks_exact(STEP).take(64) {
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
