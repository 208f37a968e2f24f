//! Reservations that outlive a loss of power (APTPL, SPC-4 5.13.5).

use super::state::{Kind, REGISTRATIONS_MAX, Registration, Reservation, State};
use super::transport::is_port;
use crate::nexus::Ports;

/// Longest text, in bytes.
pub(super) const KEPT_MAX: usize = 128 << 10;
/// The first line of what is kept.
const HEAD: &str = "reservations 1";

fn line(word: &str, value: u64, ports: &Ports) -> String {
    let Ports {
        initiator,
        target,
        target_port,
    } = ports;
    format!("{word} {value:x} {target_port} {target} {initiator}\n")
}

/// The state as text: a line a registration. Names have no spaces (RFC 3722).
pub(crate) fn encode(state: &State) -> String {
    let mut text = format!("{HEAD}\ngeneration {:x}\n", state.generation);
    for known in &state.registrations {
        text += &line("registration", known.key, &known.ports);
    }
    if let Some(held) = &state.reservation {
        text += &line("reservation", u64::from(held.kind.code()), &held.holder);
    }
    text
}

/// Names two ports, as far as a text can.
fn ports<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Ports> {
    let ports = Ports {
        target_port: words.next()?.parse().ok()?,
        target: words.next()?.to_owned(),
        initiator: words.next()?.to_owned(),
    };
    (is_port(&ports.initiator) && !ports.target.is_empty()).then_some(ports)
}

/// Parses a text; `None` if it is invalid, or of an unknown version.
pub(crate) fn decode(kept: &str) -> Option<State> {
    let mut lines = kept.lines();
    if kept.len() > KEPT_MAX || lines.next() != Some(HEAD) {
        return None;
    }
    let mut state = State {
        persists: true,
        ..State::default()
    };
    for line in lines {
        let mut words = line.splitn(5, ' ');
        let (word, value) = (words.next()?, u64::from_str_radix(words.next()?, 16).ok()?);
        match word {
            "generation" => state.generation = u32::try_from(value).ok()?,
            "registration" => {
                let ports = ports(words)?;
                let is_full = state.registrations.len() == REGISTRATIONS_MAX;
                if value == 0 || is_full || state.registration(&ports).is_some() {
                    return None;
                }
                state.registrations.push(Registration { ports, key: value });
            }
            "reservation" if state.reservation.is_none() => {
                let holder = ports(words)?;
                let kind = Kind::parse(u8::try_from(value).ok()?)?;
                state.reservation = Some(Reservation { holder, kind });
            }
            _ => return None,
        }
    }
    let is_held = state
        .reservation
        .as_ref()
        .is_none_or(|held| match held.kind.is_all() {
            true => !state.registrations.is_empty(),
            false => state.registration(&held.holder).is_some(),
        });
    is_held.then_some(state)
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
        let one = "registration 1 1 iqn.t iqn.a,i,0x00023d000001\n";
        let held = "reservation 3 1 iqn.t iqn.b,i,0x00023d000001\n";
        assert!(decode(&format!("reservations 1\n{one}")).is_some());
        for text in [
            "".to_owned(),
            "reservations 2\n".to_owned(),
            "reservations 1\nregistration zz".to_owned(),
            "\u{0}".to_owned(),
            format!("reservations 1\n{one}{one}"),
            format!("reservations 1\n{one}{held}"),
            format!("reservations 1\n{held}"),
            format!("reservations 1\n{}", one.replace(" 1 1 ", " 0 1 ")),
            format!("reservations 1\n{}", one.replace(",i,", " ")),
            format!("reservations 1\n{one}unknown 1\n"),
            format!("reservations 1\n{}", " ".repeat(KEPT_MAX)),
        ] {
            assert_eq!(decode(&text), None, "{text}");
        }
    }
}
