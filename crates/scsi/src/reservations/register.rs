//! REGISTER, REGISTER AND IGNORE EXISTING KEY, and REGISTER AND MOVE (SPC-4 5.13.7 and 5.13.8).

use super::change::{Out, Outcome, Request, tell_others};
use super::state::{REGISTRATIONS_MAX, Registration, Reservation, State};
use super::transport;
use crate::attention::Attention;
use crate::fields::{u8_at, u16_at, u32_at, u64_at};
use crate::nexus::Ports;
use crate::sense::Sense;

/// Length of the head of a list of transport identifiers.
const LENGTH_LEN: usize = 4;
/// Length of REGISTER AND MOVE's list without the transport identifier.
const MOVE_LEN: usize = 24;
const UNREG: u8 = 0x02;
const APTPL: u8 = 0x01;

impl State {
    fn set_key(&mut self, ports: &Ports, key: u64) -> Result<(), Out> {
        let mut known = self.registrations.iter_mut();
        if let Some(known) = known.find(|known| known.ports == *ports) {
            known.key = key;
            return Ok(());
        }
        if self.registrations.len() == REGISTRATIONS_MAX {
            return Err(Out::Check(Sense::NO_REGISTRATION_ROOM));
        }
        let ports = ports.clone();
        self.registrations.push(Registration { ports, key });
        Ok(())
    }
}

/// The initiator ports that a list after the first 24 bytes names (SPEC_I_PT).
fn listed(list: &[u8]) -> Result<Vec<String>, Sense> {
    let rest = list.get(24..).unwrap_or(&[]);
    let len = u32_at(rest, 0) as usize;
    let mut rest = rest
        .get(LENGTH_LEN..)
        .filter(|rest| rest.len() == len)
        .ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    let mut names = Vec::new();
    while !rest.is_empty() {
        let (name, len) = transport::parse(rest).ok_or(Sense::INVALID_FIELD_IN_LIST)?;
        if names.contains(&name) || names.len() == REGISTRATIONS_MAX {
            return Err(Sense::INVALID_FIELD_IN_LIST);
        }
        names.push(name);
        rest = &rest[len..];
    }
    Ok(names)
}

/// The same initiator at these ports of the target, or at its own.
fn at_ports<'a>(
    ports: &'a Ports,
    all: bool,
    target_ports: &'a [u16],
) -> impl Iterator<Item = Ports> + 'a {
    let others = target_ports
        .iter()
        .filter(move |number| all && **number != ports.target_port);
    std::iter::once(ports.target_port)
        .chain(others.copied())
        .map(|target_port| Ports {
            target_port,
            ..ports.clone()
        })
}

/// REGISTER (0) and REGISTER AND IGNORE EXISTING KEY (6).
pub(super) fn register(
    state: &mut State,
    (ports, target_ports): (&Ports, &[u16]),
    request: Request,
    list: &[u8],
    outcome: &mut Outcome,
) -> Result<(), Out> {
    let known = state.registration(ports).map(|known| known.key);
    if request.action == 0 && known.unwrap_or(0) != request.key {
        return Err(Out::Conflict);
    }
    let others = match request.names_others {
        true => listed(list).map_err(Out::Check)?,
        false => Vec::new(),
    };
    if !others.is_empty() && (known.is_some() || request.new_key == 0) {
        return Err(Out::Check(Sense::INVALID_FIELD_IN_LIST));
    }
    if known.is_none() && request.new_key == 0 {
        return Ok(());
    }
    let own = at_ports(ports, request.at_all_ports, target_ports);
    match request.new_key {
        0 => own.for_each(|ports| unregister(state, &ports, outcome)),
        key => {
            for ports in own {
                state.set_key(&ports, key)?;
            }
        }
    }
    for initiator in others {
        let other = Ports {
            initiator,
            ..ports.clone()
        };
        for other in at_ports(&other, request.at_all_ports, target_ports) {
            if state.registration(&other).is_some() {
                return Err(Out::Check(Sense::INVALID_FIELD_IN_LIST));
            }
            state.set_key(&other, request.new_key)?;
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

/// REGISTER AND MOVE (7): the reservation goes to another nexus of the same target.
pub(super) fn register_and_move(
    state: &mut State,
    (ports, target_ports): (&Ports, &[u16]),
    list: &[u8],
    outcome: &mut Outcome,
) -> Result<(), Out> {
    let wrong = Out::Check(Sense::INVALID_FIELD_IN_LIST);
    let (key, new_key, flags) = (u64_at(list, 0), u64_at(list, 8), u8_at(list, 17));
    let target_port = u16_at(list, 18);
    let named = list.get(MOVE_LEN..).unwrap_or(&[]);
    if u32_at(list, 20) as usize != named.len() {
        return Err(Out::Check(Sense::PARAMETER_LIST_LENGTH));
    }
    let own = state.registration(ports).map(|known| known.key);
    if own != Some(key) {
        return Err(Out::Conflict);
    }
    let kind = match &state.reservation {
        Some(held) if !held.kind.is_all() && held.holder == *ports => held.kind,
        _ => return Err(Out::Conflict),
    };
    let (initiator, len) = transport::parse(named).ok_or(wrong)?;
    let moved = Ports {
        initiator,
        target: ports.target.clone(),
        target_port,
    };
    let is_there = target_ports.contains(&target_port);
    if len != named.len() || new_key == 0 || !is_there || moved == *ports {
        return Err(wrong);
    }
    state.set_key(&moved, new_key)?;
    let holder = moved;
    state.reservation = Some(Reservation { holder, kind });
    if flags & UNREG != 0 {
        unregister(state, ports, outcome);
    }
    state.generation = state.generation.wrapping_add(1);
    state.persists = flags & APTPL != 0;
    Ok(())
}
