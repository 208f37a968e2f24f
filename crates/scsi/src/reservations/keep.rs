//! Reservations that outlive a loss of power (APTPL, SPC-4 5.13.5).

use super::state::{Kind, Registration, Reservation, State};
use crate::nexus::Ports;

/// Longest text that is read back, in bytes.
const KEPT_MAX: usize = 256 << 10;
/// The first line of what is kept.
const HEAD: &str = "reservations 1";

/// Told how keeping ended.
pub type Kept = Box<dyn FnOnce(bool) + Send>;

/// Where a unit's reservations are kept.
pub trait Keeper: Send + Sync {
    /// Whether it keeps anything at all: hosts are told.
    fn is_there(&self) -> bool;

    /// What was kept last.
    fn load(&self) -> Option<Vec<u8>>;

    /// Keeps `text` in place of what was kept before, or nothing; calls `done`, from any thread, when
    /// that is durable or has failed.
    fn keep(&self, text: Option<Vec<u8>>, done: Kept);
}

/// Keeps nothing: hosts are told that they cannot ask for it.
pub struct NoKeeper;

impl Keeper for NoKeeper {
    fn is_there(&self) -> bool {
        false
    }

    fn load(&self) -> Option<Vec<u8>> {
        None
    }

    fn keep(&self, _text: Option<Vec<u8>>, done: Kept) {
        done(true);
    }
}

fn line(word: &str, value: u64, ports: &Ports) -> String {
    let Ports {
        initiator,
        target,
        target_port,
    } = ports;
    format!("{word} {value:x} {target_port} {target} {initiator}\n")
}

/// The state as text: a line a registration. Names have no spaces (RFC 3722).
pub(super) fn encode(state: &State) -> Vec<u8> {
    let mut text = format!("{HEAD}\ngeneration {:x}\n", state.generation);
    for known in &state.registrations {
        text += &line("registration", known.key, &known.ports);
    }
    if let Some(held) = &state.reservation {
        text += &line("reservation", u64::from(held.kind.code()), &held.holder);
    }
    text.into_bytes()
}

pub(super) fn decode(kept: &[u8]) -> Option<State> {
    let text = std::str::from_utf8(kept.get(..KEPT_MAX.min(kept.len()))?).ok()?;
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return None;
    }
    let mut state = State {
        persists: true,
        ..State::default()
    };
    for line in lines {
        let mut words = line.splitn(5, ' ');
        let mut next = || words.next();
        let (word, value) = (next()?, u64::from_str_radix(next()?, 16).ok()?);
        if word == "generation" {
            state.generation = u32::try_from(value).ok()?;
            continue;
        }
        let ports = Ports {
            target_port: next()?.parse().ok()?,
            target: next()?.to_owned(),
            initiator: next()?.to_owned(),
        };
        match word {
            "registration" => state.registrations.push(Registration { ports, key: value }),
            "reservation" => {
                state.reservation = Some(Reservation {
                    holder: ports,
                    kind: Kind::parse(u8::try_from(value).ok()?)?,
                });
            }
            _ => return None,
        }
    }
    Some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let ports = |name: &str| Ports {
            initiator: format!("{name},i,0x00023d000001"),
            target: "iqn.t".to_owned(),
            target_port: 2,
        };
        let registration = |name: &str, key| Registration {
            ports: ports(name),
            key,
        };
        let state = State {
            generation: 7,
            registrations: vec![registration("iqn.a", u64::MAX), registration("iqn.b", 1)],
            reservation: Some(Reservation {
                holder: ports("iqn.b"),
                kind: Kind::WriteExclusiveRegistrants,
            }),
            persists: true,
            legacy: None,
        };
        assert_eq!(decode(&encode(&state)), Some(state));
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        for text in [
            "",
            "reservations 2\n",
            "reservations 1\nregistration zz",
            "\u{0}",
        ] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
