//! Persistent reservations as a list of commands and what comes of them.

use super::keep::{Keeper, Kept, NoKeeper};
use super::state::Reservations;
use super::{Out, change, report};
use crate::attention::Attention;
use crate::fields::u32_at;
use crate::nexus::Ports;
use crate::table::Access;
use std::sync::{Arc, Mutex};

fn ports(name: &str) -> Ports {
    Ports {
        initiator: format!("iqn.{name},i,0x00023d000001"),
        target: "iqn.t".to_owned(),
        target_port: 1,
    }
}

/// A command of a nexus: action, type, its key, the other key.
fn out(
    reservations: &Reservations,
    who: &str,
    (action, kind, key, new): (u8, u8, u64, u64),
) -> Result<super::change::Outcome, Out> {
    let mut list = [0; 24];
    list[..8].copy_from_slice(&key.to_be_bytes());
    list[8..16].copy_from_slice(&new.to_be_bytes());
    let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0];
    change(reservations, &ports(who), &cdb, &list)
}

fn registered(names: &[(&str, u64)]) -> Reservations {
    let reservations = Reservations::new(Arc::new(NoKeeper));
    for (name, key) in names {
        assert!(out(&reservations, name, (0, 0, 0, *key)).is_ok());
    }
    reservations
}

/// Whether a nexus may read, and write.
fn may(reservations: &Reservations, who: &str) -> (bool, bool) {
    let conflicts = |access| reservations.conflicts(access, 99, &ports(who));
    (!conflicts(Access::Read), !conflicts(Access::Write))
}

#[test]
fn every_type_lets_in_whom_it_should() {
    // The type; what the holder, another that is registered, and a stranger may.
    let all = (true, true);
    let (reads, none) = ((true, false), (false, false));
    for (kind, registrant, stranger) in [
        (1, reads, reads),
        (3, none, none),
        (5, all, reads),
        (6, all, none),
        (7, all, reads),
        (8, all, none),
    ] {
        let reservations = registered(&[("a", 1), ("b", 2)]);
        assert!(out(&reservations, "a", (1, kind, 1, 0)).is_ok());
        assert_eq!(may(&reservations, "a"), all, "{kind}");
        assert_eq!(may(&reservations, "b"), registrant, "{kind}");
        assert_eq!(may(&reservations, "c"), stranger, "{kind}");
        assert!(
            !reservations.conflicts(Access::Free, 99, &ports("c")),
            "{kind}"
        );
    }
}

#[test]
fn wrong_keys_and_strangers_are_conflicts() {
    let reservations = registered(&[("a", 1)]);
    for (who, command) in [
        ("a", (0, 0, 2, 3)),
        ("b", (0, 0, 1, 3)),
        ("a", (1, 1, 2, 0)),
        ("b", (1, 1, 0, 0)),
        ("a", (2, 1, 2, 0)),
        ("a", (3, 0, 2, 0)),
        ("a", (4, 1, 1, 9)),
        ("b", (4, 1, 1, 1)),
    ] {
        let refused = out(&reservations, who, command);
        assert_eq!(refused, Err(Out::Conflict), "{who} {command:?}");
    }
    assert!(
        out(&reservations, "b", (6, 0, 7, 3)).is_ok(),
        "who ignores its key needs none"
    );
}

#[test]
fn a_second_reservation_is_a_conflict_and_the_same_again_is_none() {
    let reservations = registered(&[("a", 1), ("b", 2)]);
    assert!(out(&reservations, "a", (1, 5, 1, 0)).is_ok());
    assert!(out(&reservations, "a", (1, 5, 1, 0)).is_ok());
    assert_eq!(out(&reservations, "a", (1, 6, 1, 0)), Err(Out::Conflict));
    assert_eq!(out(&reservations, "b", (1, 5, 2, 0)), Err(Out::Conflict));
    assert!(matches!(
        out(&reservations, "a", (2, 6, 1, 0)),
        Err(Out::Check(_))
    ));
}

#[test]
fn who_leaves_takes_the_reservation_along_unless_all_hold_it() {
    let reservations = registered(&[("a", 1), ("b", 2)]);
    assert!(out(&reservations, "a", (1, 6, 1, 0)).is_ok());
    let outcome = out(&reservations, "a", (0, 0, 1, 0)).unwrap();
    assert_eq!(
        outcome.told,
        [(ports("b"), Attention::ReservationsReleased)]
    );
    assert_eq!(may(&reservations, "c"), (true, true));
    assert!(out(&reservations, "b", (1, 8, 2, 0)).is_ok());
    assert!(out(&reservations, "a", (0, 0, 0, 1)).is_ok());
    assert!(out(&reservations, "b", (0, 0, 2, 0)).is_ok());
    assert_eq!(may(&reservations, "c"), (false, false), "a still holds it");
    assert!(out(&reservations, "a", (0, 0, 1, 0)).is_ok());
    assert_eq!(may(&reservations, "c"), (true, true));
}

#[test]
fn preempting_takes_over_and_tells_who_lost() {
    let reservations = registered(&[("a", 1), ("b", 2), ("c", 2)]);
    assert!(out(&reservations, "b", (1, 3, 2, 0)).is_ok());
    let outcome = out(&reservations, "a", (5, 1, 1, 2)).unwrap();
    let lost = Attention::RegistrationsPreempted;
    assert_eq!(outcome.told, [(ports("b"), lost), (ports("c"), lost)]);
    assert_eq!(outcome.aborted, [ports("b"), ports("c")]);
    assert_eq!(may(&reservations, "a"), (true, true));
    assert_eq!(
        may(&reservations, "b"),
        (true, false),
        "it is a's now, of another type"
    );
    let keys = report(&reservations, &[0x5e, 0]).unwrap();
    assert_eq!((u32_at(&keys, 0), u32_at(&keys, 4), keys[15]), (4, 8, 1));
}

#[test]
fn of_a_reservation_that_all_hold_key_zero_preempts_everybody() {
    let reservations = registered(&[("a", 1), ("b", 2), ("c", 3)]);
    assert!(out(&reservations, "b", (1, 7, 2, 0)).is_ok());
    assert!(
        out(&reservations, "a", (4, 7, 1, 3))
            .unwrap()
            .aborted
            .is_empty()
    );
    assert_eq!(
        may(&reservations, "c"),
        (true, false),
        "it lost its registration only"
    );
    assert_eq!(may(&reservations, "b"), (true, true));
    assert!(out(&reservations, "a", (4, 1, 1, 0)).is_ok());
    assert_eq!(may(&reservations, "b"), (true, false));
}

#[test]
fn clearing_ends_all_of_it() {
    let reservations = registered(&[("a", 1), ("b", 2)]);
    assert!(out(&reservations, "b", (1, 3, 2, 0)).is_ok());
    let outcome = out(&reservations, "a", (3, 0, 1, 0)).unwrap();
    assert_eq!(
        outcome.told,
        [(ports("b"), Attention::ReservationsPreempted)]
    );
    assert_eq!(may(&reservations, "c"), (true, true));
    assert_eq!(report(&reservations, &[0x5e, 0]).unwrap().len(), 8);
}

#[test]
fn the_old_kind_and_the_new_exclude_each_other() {
    let reservations = registered(&[("a", 1)]);
    assert!(!reservations.reserve_legacy(1) && reservations.refuses_release());
    let reservations = registered(&[]);
    assert!(reservations.reserve_legacy(1) && !reservations.reserve_legacy(2));
    assert!(reservations.conflicts(Access::Persistent, 2, &ports("b")));
    assert!(reservations.conflicts(Access::Free, 2, &ports("b")));
    assert!(!reservations.conflicts(Access::Write, 1, &ports("a")));
    reservations.release_legacy(Some(2));
    assert!(
        reservations.conflicts(Access::Read, 2, &ports("b")),
        "it is not b's to release"
    );
    reservations.release_legacy(Some(1));
    assert!(!reservations.conflicts(Access::Read, 2, &ports("b")));
}

#[derive(Default)]
struct Memory(Mutex<Option<Vec<u8>>>);

impl Keeper for Memory {
    fn is_there(&self) -> bool {
        true
    }

    fn load(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap().clone()
    }

    fn keep(&self, text: Option<Vec<u8>>, done: Kept) {
        *self.0.lock().unwrap() = text;
        done(true);
    }
}

#[test]
fn what_a_host_wants_kept_is_there_again() {
    let keeper = Arc::new(Memory::default());
    let reservations = Reservations::new(keeper.clone());
    let mut list = [0; 24];
    (list[15], list[20]) = (7, 1);
    let cdb = [0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0];
    let kept = change(&reservations, &ports("a"), &cdb, &list)
        .unwrap()
        .keep;
    assert!(matches!(&kept, Some(Some(_))));
    let kept = out(&reservations, "a", (1, 3, 7, 0)).unwrap().keep;
    keeper.keep(kept.unwrap(), Box::new(|_| ()));
    let again = Reservations::new(keeper);
    assert_eq!(
        (may(&again, "a"), may(&again, "b")),
        ((true, true), (false, false))
    );
    let without = registered(&[]);
    let refused = change(&without, &ports("a"), &cdb, &list);
    assert!(
        matches!(refused, Err(Out::Check(_))),
        "without a keeper it is refused"
    );
}
