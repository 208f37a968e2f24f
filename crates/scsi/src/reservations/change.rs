//! PERSISTENT RESERVE OUT (SPC-4 6.16).

use super::keep::encode;
use super::state::{Kind, REGISTRATIONS_MAX, Registration, Reservation, Reservations, State};
use crate::attention::Attention;
use crate::fields::{u8_at, u32_at, u64_at};
use crate::nexus::Ports;
use crate::sense::Sense;

/// Length of the parameter list.
const LIST_LEN: usize = 24;
const SPEC_I_PT: u8 = 0x08;
const ALL_TG_PT: u8 = 0x04;
const APTPL: u8 = 0x01;

/// Why a change was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Out {
    Conflict,
    Check(Sense),
}

/// What a change brings with it.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// Who is told what.
    pub told: Vec<(Ports, Attention)>,
    /// Whose commands are aborted.
    pub aborted: Vec<Ports>,
    /// What is to be kept from now on, when that has changed.
    pub keep: Option<Option<Vec<u8>>>,
}

#[derive(Clone, Copy)]
struct Request {
    action: u8,
    /// Scope and type.
    reserve: u8,
    key: u64,
    /// SERVICE ACTION RESERVATION KEY.
    new_key: u64,
    persists: bool,
}

fn parse(cdb: &[u8], list: &[u8], may_persist: bool) -> Result<Request, Sense> {
    let action = u8_at(cdb, 1) & 0x1f;
    if u32_at(cdb, 5) as usize != LIST_LEN || list.len() < LIST_LEN {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let flags = u8_at(list, 20);
    let registers = matches!(action, 0 | 6);
    let persists = registers && flags & APTPL != 0;
    if registers && flags & (SPEC_I_PT | ALL_TG_PT) != 0 || persists && !may_persist {
        return Err(Sense::INVALID_FIELD_IN_LIST);
    }
    Ok(Request {
        action,
        reserve: u8_at(cdb, 2),
        key: u64_at(list, 0),
        new_key: u64_at(list, 8),
        persists,
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

/// Carries out the command for the nexus with these ports.
pub(crate) fn change(
    reservations: &Reservations,
    ports: &Ports,
    cdb: &[u8],
    list: &[u8],
) -> Result<Outcome, Out> {
    let may_persist = reservations.keeper.is_there();
    let request = parse(cdb, list, may_persist).map_err(Out::Check)?;
    let mut state = reservations.lock();
    let before = state.persists;
    let mut outcome = Outcome::default();
    match request.action {
        0 | 6 => register(&mut state, ports, request, &mut outcome)?,
        1 => reserve(&mut state, ports, request)?,
        2 => release(&mut state, ports, request, &mut outcome)?,
        3 => clear(&mut state, ports, request, &mut outcome)?,
        4 | 5 => preempt(&mut state, ports, request, &mut outcome)?,
        _ => return Err(Out::Check(Sense::INVALID_FIELD_IN_CDB)),
    }
    if before || state.persists {
        outcome.keep = Some(state.persists.then(|| encode(&state)));
    }
    reservations.refresh(&state);
    Ok(outcome)
}

/// Tells every registered nexus but `ports`.
fn tell_others(state: &State, ports: &Ports, attention: Attention, outcome: &mut Outcome) {
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

fn register(
    state: &mut State,
    ports: &Ports,
    request: Request,
    outcome: &mut Outcome,
) -> Result<(), Out> {
    let known = state.registration(ports).map(|known| known.key);
    if request.action == 0 && known.unwrap_or(0) != request.key {
        return Err(Out::Conflict);
    }
    match (known, request.new_key) {
        (None, 0) => return Ok(()),
        (Some(_), 0) => unregister(state, ports, outcome),
        (None, key) => {
            if state.registrations.len() == REGISTRATIONS_MAX {
                return Err(Out::Check(Sense::NO_REGISTRATION_ROOM));
            }
            let ports = ports.clone();
            state.registrations.push(Registration { ports, key });
        }
        (Some(_), key) => {
            let own = state.registrations.iter_mut();
            own.filter(|known| known.ports == *ports)
                .for_each(|known| known.key = key);
        }
    }
    state.generation = state.generation.wrapping_add(1);
    state.persists = request.persists;
    Ok(())
}

fn unregister(state: &mut State, ports: &Ports, outcome: &mut Outcome) {
    let was_holder = state.is_holder(ports);
    state.registrations.retain(|known| known.ports != *ports);
    let Some(held) = &state.reservation else {
        return;
    };
    let kind = held.kind;
    if kind.is_all() && state.registrations.is_empty() || !kind.is_all() && was_holder {
        state.reservation = None;
        if kind.is_for_registrants() {
            tell_others(state, ports, Attention::ReservationsReleased, outcome);
        }
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
