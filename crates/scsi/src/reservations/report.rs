//! PERSISTENT RESERVE IN (SPC-4 6.15).

use super::state::{Reservations, State};
use super::transport;
use crate::fields::u8_at;
use crate::sense::Sense;

/// Parameter data, whole; the caller cuts it at the allocation length.
pub(crate) fn report(reservations: &Reservations, cdb: &[u8]) -> Result<Vec<u8>, Sense> {
    let state = reservations.lock();
    match u8_at(cdb, 1) & 0x1f {
        0 => Ok(keys(&state)),
        1 => Ok(reservation(&state)),
        2 => Ok(capabilities(&state, reservations.keeper().is_there())),
        3 => Ok(full_status(&state)),
        _ => Err(Sense::INVALID_FIELD_IN_CDB),
    }
}

fn head(state: &State, body: &[u8]) -> Vec<u8> {
    let mut data = state.generation.to_be_bytes().to_vec();
    data.extend((body.len() as u32).to_be_bytes());
    data.extend(body);
    data
}

fn keys(state: &State) -> Vec<u8> {
    let keys = state.registrations.iter();
    let body: Vec<u8> = keys.flat_map(|known| known.key.to_be_bytes()).collect();
    head(state, &body)
}

fn reservation(state: &State) -> Vec<u8> {
    let Some(held) = &state.reservation else {
        return head(state, &[]);
    };
    let mut body = [0; 16];
    let key = match held.kind.is_all() {
        true => 0,
        false => state
            .registration(&held.holder)
            .map_or(0, |known| known.key),
    };
    body[..8].copy_from_slice(&key.to_be_bytes());
    body[13] = held.kind.code();
    head(state, &body)
}

/// SPC-4 table 228. CRH is not set: RESERVE and RELEASE conflict while any nexus is registered.
fn capabilities(state: &State, keeps: bool) -> Vec<u8> {
    let mut data = vec![0; 8];
    data[1] = 8;
    // Initiator ports can be named (SIP_C), and all target ports meant (ATP_C); PTPL_C.
    data[2] = 0x08 | 0x04 | u8::from(keeps);
    // TMV; ALLOW COMMANDS 3: TEST UNIT READY, MODE SENSE and the like as the tables say.
    data[3] = 0x80 | u8::from(keeps && state.persists);
    // The six types.
    data[4] = 0xea;
    data[5] = 0x01;
    data
}

fn full_status(state: &State) -> Vec<u8> {
    let mut body = Vec::new();
    for known in &state.registrations {
        let name = transport::encode(&known.ports.initiator);
        let mut entry = [0; 24];
        entry[..8].copy_from_slice(&known.key.to_be_bytes());
        if let Some(held) = &state.reservation
            && state.is_holder(&known.ports)
        {
            entry[12] = 0x01;
            entry[13] = held.kind.code();
        }
        entry[18..20].copy_from_slice(&known.ports.target_port.to_be_bytes());
        entry[20..].copy_from_slice(&(name.len() as u32).to_be_bytes());
        body.extend(entry);
        body.extend(name);
    }
    head(state, &body)
}
