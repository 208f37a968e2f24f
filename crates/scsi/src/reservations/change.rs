//! PERSISTENT RESERVE OUT (SPC-4 6.16).

use super::keep::{KEPT_MAX, encode};
use super::register::{register, register_and_move};
use super::state::{Kind, Registration, Reservation, State};
use crate::attention::Attention;
use crate::fields::{u8_at, u32_at, u64_at};
use crate::nexus::Ports;
use crate::sense::Sense;

/// Length of the parameter list, of what is not longer.
const LIST_LEN: usize = 24;
/// REGISTER AND MOVE, which has a list of its own.
const MOVE: u8 = 7;
const SPEC_I_PT: u8 = 0x08;
const ALL_TG_PT: u8 = 0x04;
const APTPL: u8 = 0x01;

/// Why a change was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    Conflict,
    Check(Sense),
}

/// Consequences of a change.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// Unit attentions to report.
    pub told: Vec<(Ports, Attention)>,
    /// Whose commands are aborted.
    pub aborted: Vec<Ports>,
    /// The state to store, if it has changed.
    pub keep: Option<Option<String>>,
}

#[derive(Clone, Copy)]
pub(super) struct Request {
    pub action: u8,
    /// Scope and type.
    reserve: u8,
    pub key: u64,
    /// SERVICE ACTION RESERVATION KEY.
    pub new_key: u64,
    /// APTPL: all of it is to be kept.
    pub persists: bool,
    /// SPEC_I_PT: the list names further initiator ports.
    pub names_others: bool,
    /// ALL_TG_PT: it is for every port of the target.
    pub at_all_ports: bool,
}

fn parse(cdb: &[u8], list: &[u8], may_persist: bool) -> Result<Request, Sense> {
    let action = u8_at(cdb, 1) & 0x1f;
    if list.len() < LIST_LEN {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let flags = u8_at(list, if action == MOVE { 17 } else { 20 });
    let registers = matches!(action, 0 | 6);
    let names_others = registers && flags & SPEC_I_PT != 0;
    if names_others && action != 0 {
        return Err(Sense::INVALID_FIELD_IN_LIST);
    }
    if list.len() != LIST_LEN && !names_others && action != MOVE {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let persists = (registers || action == MOVE) && flags & APTPL != 0;
    if persists && !may_persist {
        return Err(Sense::INVALID_FIELD_IN_LIST);
    }
    Ok(Request {
        action,
        reserve: u8_at(cdb, 2),
        key: u64_at(list, 0),
        new_key: u64_at(list, 8),
        persists,
        names_others,
        at_all_ports: registers && flags & ALL_TG_PT != 0,
    })
}

impl Request {
    /// The type; only the scope of the whole unit is there.
    fn kind(&self) -> Result<Kind, Out> {
        let kind = (self.reserve >> 4 == 0).then(|| Kind::parse(self.reserve & 0x0f));
        kind.flatten()
            .ok_or(Out::Check(Sense::INVALID_FIELD_IN_CDB))
    }
}

/// Carries out the command for the nexus with these ports, of a target with ports of these numbers:
/// `state` becomes what it is to be then, or something of no meaning where an error is returned.
pub(crate) fn change(
    state: &mut State,
    (ports, target_ports): (&Ports, &[u16]),
    cdb: &[u8],
    list: &[u8],
    may_persist: bool,
) -> Result<Outcome, Out> {
    let list = list.get(..u32_at(cdb, 5) as usize);
    let list = list.ok_or(Out::Check(Sense::PARAMETER_LIST_LENGTH))?;
    let request = parse(cdb, list, may_persist).map_err(Out::Check)?;
    let before = state.clone();
    let mut outcome = Outcome::default();
    let own = (ports, target_ports);
    match request.action {
        0 | 6 => register(state, own, request, list, &mut outcome)?,
        1 => reserve(state, ports, request)?,
        2 => release(state, ports, request, &mut outcome)?,
        3 => clear(state, ports, request, &mut outcome)?,
        4 | 5 => preempt(state, ports, request, &mut outcome)?,
        MOVE => register_and_move(state, own, list, &mut outcome)?,
        _ => return Err(Out::Check(Sense::INVALID_FIELD_IN_CDB)),
    }
    if (before.persists || state.persists) && *state != before {
        let kept = state.persists.then(|| encode(state));
        if kept.as_ref().is_some_and(|kept| kept.len() > KEPT_MAX) {
            return Err(Out::Check(Sense::NO_REGISTRATION_ROOM));
        }
        outcome.keep = Some(kept);
    }
    Ok(outcome)
}

/// Tells every registered nexus but `ports`.
pub(super) fn tell_others(
    state: &State,
    ports: &Ports,
    attention: Attention,
    outcome: &mut Outcome,
) {
    let others = state
        .registrations
        .iter()
        .filter(|known| known.ports != *ports);
    outcome
        .told
        .extend(others.map(|known| (known.ports.clone(), attention)));
}

fn check_registered(state: &State, ports: &Ports, request: Request) -> Result<(), Out> {
    match state.registration(ports) {
        Some(known) if known.key == request.key => Ok(()),
        _ => Err(Out::Conflict),
    }
}

fn reserve(state: &mut State, ports: &Ports, request: Request) -> Result<(), Out> {
    check_registered(state, ports, request)?;
    let kind = request.kind()?;
    match &state.reservation {
        Some(held) if state.is_holder(ports) && held.kind == kind => {}
        Some(_) => return Err(Out::Conflict),
        None => {
            let holder = ports.clone();
            state.reservation = Some(Reservation { holder, kind });
        }
    }
    Ok(())
}

fn release(
    state: &mut State,
    ports: &Ports,
    request: Request,
    outcome: &mut Outcome,
) -> Result<(), Out> {
    check_registered(state, ports, request)?;
    if !state.is_holder(ports) {
        return Ok(());
    }
    let kind = request.kind();
    let Some(held) = state.reservation.take_if(|held| kind == Ok(held.kind)) else {
        return Err(Out::Check(Sense::INVALID_RELEASE));
    };
    if held.kind.is_for_registrants() {
        tell_others(state, ports, Attention::ReservationsReleased, outcome);
    }
    Ok(())
}

fn clear(
    state: &mut State,
    ports: &Ports,
    request: Request,
    outcome: &mut Outcome,
) -> Result<(), Out> {
    check_registered(state, ports, request)?;
    tell_others(state, ports, Attention::ReservationsPreempted, outcome);
    state.registrations.clear();
    state.reservation = None;
    state.generation = state.generation.wrapping_add(1);
    Ok(())
}

/// Whether the reservation itself is preempted, and not registrations alone (SPC-4 5.13.11.4).
fn preempts_reservation(state: &State, request: Request) -> Result<bool, Out> {
    let Some(held) = &state.reservation else {
        return match request.new_key {
            0 => Err(Out::Check(Sense::INVALID_FIELD_IN_LIST)),
            _ => Ok(false),
        };
    };
    if held.kind.is_all() {
        return Ok(request.new_key == 0);
    }
    if request.new_key == 0 {
        return Err(Out::Check(Sense::INVALID_FIELD_IN_LIST));
    }
    let key = state.registration(&held.holder).map(|known| known.key);
    Ok(key == Some(request.new_key))
}

fn preempt(
    state: &mut State,
    ports: &Ports,
    request: Request,
    outcome: &mut Outcome,
) -> Result<(), Out> {
    check_registered(state, ports, request)?;
    let takes_over = preempts_reservation(state, request)?;
    let kind = takes_over.then(|| request.kind()).transpose()?;
    let all = request.new_key == 0;
    let is_named = |known: &Registration| all || known.key == request.new_key;
    if !all && !state.registrations.iter().any(is_named) {
        return Err(Out::Conflict);
    }
    let (gone, left): (Vec<_>, Vec<_>) = std::mem::take(&mut state.registrations)
        .into_iter()
        .partition(|known| is_named(known) && known.ports != *ports);
    state.registrations = left;
    for known in &gone {
        let told = (known.ports.clone(), Attention::RegistrationsPreempted);
        outcome.told.push(told);
    }
    if request.action == 5 {
        outcome
            .aborted
            .extend(gone.into_iter().map(|known| known.ports));
    }
    if let Some(kind) = kind {
        let holder = ports.clone();
        let before = state.reservation.replace(Reservation { holder, kind });
        if before.is_some_and(|before| before.kind != kind && before.kind.is_for_registrants()) {
            tell_others(state, ports, Attention::ReservationsReleased, outcome);
        }
    }
    state.generation = state.generation.wrapping_add(1);
    Ok(())
}
