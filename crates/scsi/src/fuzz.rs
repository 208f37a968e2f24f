//! Access of the fuzz targets (`crates/fuzz-targets`) to private parsers.
//!
//! Compiled in every build, since a feature would build all dependents twice; programs that do not call
//! it are linked without it.

use crate::nexus::Ports;
use crate::reservations::{change, decode, encode};

/// Decodes stored reservations, the input up to its first zero, and changes them by PERSISTENT RESERVE
/// OUT: of each command in the rest a byte is the initiator, one the length of its list, and two are
/// action and type.
///
/// # Panics
/// When a state arises that does not survive being stored and read again.
pub fn stored_reservations(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let kept = parts.next().and_then(|kept| std::str::from_utf8(kept).ok());
    let mut state = kept.and_then(decode).unwrap_or_default();
    let mut rest = parts.next().unwrap_or_default();
    while let [who, len, action, kind, after @ ..] = rest {
        let (list, after) = after.split_at(usize::from(*len).min(after.len()));
        rest = after;
        let ports = Ports {
            initiator: format!("iqn.{},i,0x00023d000001", who & 3),
            target: "iqn.t".to_owned(),
            target_port: 1,
        };
        let mut cdb = [0x5f, *action, *kind, 0, 0, 0, 0, 0, 0, 0];
        cdb[8] = list.len() as u8;
        let mut changed = state.clone();
        if change(&mut changed, (&ports, &[1, 2]), &cdb, list, true).is_ok() {
            state = changed;
        }
        let read = decode(&encode(&state));
        assert_eq!(read.map(|read| encode(&read)), Some(encode(&state)));
    }
}
