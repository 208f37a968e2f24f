//! Persistent reservations as lists of commands with their results.

use super::state::Reservations;
use super::{Out, change, report};
use crate::attention::Attention;
use crate::fields::u32_at;
use crate::nexus::Ports;
use crate::sense::Sense;
use crate::table::Access;
use reactor::{Keeper, Kept, NoKeeper};
use std::sync::{Arc, Mutex};

fn ports(name: &str) -> Ports {
    Ports {
        initiator: format!("iqn.{name},i,0x00023d000001"),
        target: "iqn.t".to_owned(),
        target_port: 1,
    }
}

/// What a parameter list comes to at a nexus of port 1, of a target with the ports 1 and 2.
fn change_of(
    reservations: &Reservations,
    who: &str,
    (action, kind): (u8, u8),
    list: &[u8],
) -> Result<super::change::Outcome, Out> {
    let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, list.len() as u8, 0];
    let keeps = reservations.keeper().is_there();
    let mut state = reservations.state();
    let outcome = change(&mut state, (&ports(who), &[1, 2]), &cdb, list, keeps)?;
    reservations.install(state);
    Ok(outcome)
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
    change_of(reservations, who, (action, kind), &list)
}

fn registered(names: &[(&str, u64)]) -> Reservations {
    let reservations = Reservations::new(Arc::new(NoKeeper)).unwrap();
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
struct Memory(Mutex<Option<String>>);

impl Keeper for Memory {
    fn is_there(&self) -> bool {
        true
    }

    fn load(&self) -> std::io::Result<Option<String>> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn keep(&self, text: Option<String>, done: Kept) {
        *self.0.lock().unwrap() = text;
        done(true);
    }
}

/// A parameter list of REGISTER with these flags.
fn register_list(new: u8, flags: u8) -> [u8; 24] {
    let mut list = [0; 24];
    (list[15], list[20]) = (new, flags);
    list
}

#[test]
fn what_a_host_wants_kept_is_there_again() {
    let keeper = Arc::new(Memory::default());
    let reservations = Reservations::new(keeper.clone()).unwrap();
    let kept = change_of(&reservations, "a", (0, 0), &register_list(7, 1));
    assert!(matches!(kept.unwrap().keep, Some(Some(_))));
    let kept = out(&reservations, "a", (1, 3, 7, 0)).unwrap().keep;
    keeper.keep(kept.unwrap(), Box::new(|_| ()));
    let again = out(&reservations, "a", (1, 3, 7, 0)).unwrap().keep;
    assert_eq!(again, None, "nothing has changed");
    let restarted = Reservations::new(keeper).unwrap();
    assert_eq!(
        (may(&restarted, "a"), may(&restarted, "b")),
        ((true, true), (false, false))
    );
    let kept = out(&restarted, "a", (6, 0, 0, 7)).unwrap().keep;
    assert_eq!(kept, Some(None), "registered anew without APTPL");
    let without = registered(&[]);
    let refused = change_of(&without, "a", (0, 0), &register_list(7, 1));
    assert!(
        matches!(refused, Err(Out::Check(_))),
        "without a keeper it is refused"
    );
}

#[test]
fn what_was_kept_and_cannot_be_read_is_not_taken_for_nothing() {
    let keeper = Memory(Mutex::new(Some("reservations 2".to_owned())));
    assert!(Reservations::new(Arc::new(keeper)).is_err());
}

/// Whether the nexus with port 2 may write.
fn may_at_second_port(reservations: &Reservations, who: &str) -> bool {
    let mut ports = ports(who);
    ports.target_port = 2;
    !reservations.conflicts(Access::Write, 99, &ports)
}

#[test]
fn all_target_ports_are_registered_and_unregistered_at_once() {
    let reservations = registered(&[]);
    assert!(change_of(&reservations, "a", (0, 0), &register_list(7, 4)).is_ok());
    assert!(out(&reservations, "a", (1, 5, 7, 0)).is_ok());
    assert!(may_at_second_port(&reservations, "a"));
    assert!(!may_at_second_port(&reservations, "b"));
    let mut list = register_list(0, 4);
    list[7] = 7;
    assert!(change_of(&reservations, "a", (0, 0), &list).is_ok());
    assert_eq!(report(&reservations, &[0x5e, 0]).unwrap().len(), 8);
}

/// A list of REGISTER with SPEC_I_PT for these initiators.
fn naming(new: u8, others: &[&str]) -> Vec<u8> {
    let ids = others.iter();
    let ids: Vec<u8> = ids
        .flat_map(|name| super::transport::encode(&ports(name).initiator))
        .collect();
    let mut list = register_list(new, 8).to_vec();
    list.extend((ids.len() as u32).to_be_bytes());
    list.extend(ids);
    list
}

#[test]
fn others_are_registered_by_name_or_nobody_is() {
    let reservations = registered(&[("c", 3)]);
    for (list, sense) in [
        (naming(7, &["b", "c"]), Sense::INVALID_FIELD_IN_LIST),
        (naming(7, &["b", "b"]), Sense::INVALID_FIELD_IN_LIST),
        (naming(0, &["b"]), Sense::INVALID_FIELD_IN_LIST),
        (
            naming(7, &["b"])[..30].to_vec(),
            Sense::PARAMETER_LIST_LENGTH,
        ),
    ] {
        let refused = change_of(&reservations, "a", (0, 0), &list);
        assert_eq!(refused, Err(Out::Check(sense)));
    }
    let refused = change_of(&reservations, "a", (6, 0), &naming(7, &["b"]));
    assert!(refused.is_err(), "REGISTER alone may name others");
    let keys = report(&reservations, &[0x5e, 0]).unwrap();
    assert_eq!(u32_at(&keys, 4), 8, "c alone");
    assert!(change_of(&reservations, "a", (0, 0), &naming(7, &["b", "d"])).is_ok());
    assert!(out(&reservations, "b", (1, 1, 7, 0)).is_ok());
}

/// A list of REGISTER AND MOVE.
fn moving(key: u8, new: u8, flags: u8, port: u8, to: &str) -> Vec<u8> {
    let id = super::transport::encode(&ports(to).initiator);
    let mut list = vec![0; 24];
    (list[7], list[15], list[17], list[19]) = (key, new, flags, port);
    list[20..].copy_from_slice(&(id.len() as u32).to_be_bytes());
    list.extend(id);
    list
}

#[test]
fn a_reservation_is_moved_by_its_holder_alone() {
    let reservations = registered(&[("a", 1), ("b", 2)]);
    let go = |who: &str, list: &[u8]| change_of(&reservations, who, (7, 0), list);
    let refused = go("a", &moving(1, 9, 0, 1, "c"));
    assert_eq!(refused, Err(Out::Conflict), "nothing is held");
    assert!(out(&reservations, "a", (1, 3, 1, 0)).is_ok());
    for (who, list) in [
        ("b", moving(2, 9, 0, 1, "c")),
        ("c", moving(0, 9, 0, 1, "c")),
        ("a", moving(2, 9, 0, 1, "c")),
    ] {
        assert_eq!(go(who, &list), Err(Out::Conflict), "{who}");
    }
    for list in [
        moving(1, 0, 0, 1, "c"),
        moving(1, 9, 0, 3, "c"),
        moving(1, 9, 0, 1, "a"),
        [moving(1, 9, 0, 1, "c"), vec![0; 4]].concat(),
    ] {
        assert!(matches!(go("a", &list), Err(Out::Check(_))));
    }
    assert_eq!(may(&reservations, "a"), (true, true), "nothing was done");
    assert!(go("a", &moving(1, 9, 2, 1, "c")).is_ok());
    assert_eq!(may(&reservations, "c"), (true, true));
    assert_eq!(may(&reservations, "a"), (false, false));
    assert_eq!(out(&reservations, "a", (2, 3, 1, 0)), Err(Out::Conflict));
    assert!(out(&reservations, "c", (2, 3, 9, 0)).is_ok());
}

#[test]
fn capabilities_say_what_there_is() {
    let capabilities = |keeper: Arc<dyn Keeper>| {
        let reservations = Reservations::new(keeper).unwrap();
        report(&reservations, &[0x5e, 2]).unwrap()
    };
    assert_eq!(capabilities(Arc::new(NoKeeper))[2], 0x0c);
    assert_eq!(capabilities(Arc::<Memory>::default())[2], 0x0d);
}
