//! LOG SENSE (SPC-4 6.8, 7.3; SBC-3 6.4.4 for logical block provisioning).

use crate::execute::{Answer, Call};
use crate::fields::u16_at;
use crate::sense::Sense;
use crate::unit::sets;
use reactor::Space;

const SUPPORTED: u8 = 0x00;
const PROVISIONING: u8 = 0x0c;
const EXCEPTIONS: u8 = 0x2f;
/// Parameters of the page of logical block provisioning.
const AVAILABLE: u16 = 0x0001;
const USED: u16 = 0x0002;
/// The count is of what the unit shares with others (SCOPE).
const SHARED: u8 = 0x02;

fn resource(code: u16, bytes: u64) -> Vec<u8> {
    let mut parameter = code.to_be_bytes().to_vec();
    // Binary, of the list format; eight bytes follow.
    parameter.extend([0x03, 8]);
    parameter.extend(sets(bytes).to_be_bytes());
    parameter.extend([SHARED, 0, 0, 0]);
    parameter
}

/// Free and used space of the pool; `None` while unknown.
fn provisioning(space: Option<Space>) -> Vec<u8> {
    let Some(space) = space else {
        return Vec::new();
    };
    let left = space.capacity.saturating_sub(space.used);
    [resource(AVAILABLE, left), resource(USED, space.used)].concat()
}

pub(crate) fn sense(call: &Call<'_>) -> Answer {
    let (code, sub_page) = (call.cdb[2] & 0x3f, call.cdb[3]);
    if sub_page != 0 || call.cdb[1] & 0x03 != 0 {
        return Err(Sense::INVALID_FIELD_IN_CDB.into());
    }
    let body = match code {
        SUPPORTED => vec![SUPPORTED, PROVISIONING, EXCEPTIONS],
        PROVISIONING => provisioning(call.nexus.unit.space()),
        // Parameter 0000h: no exception, no temperature.
        EXCEPTIONS => vec![0, 0, 0x03, 4, 0, 0, 0xff, 0],
        _ => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
    };
    let mut data = vec![code, 0];
    data.extend((body.len() as u16).to_be_bytes());
    data.extend(body);
    Ok(call.give_cut(data, usize::from(u16_at(call.cdb, 7))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_counted_in_sets() {
        let space = Space {
            used: 3 << 20,
            capacity: 10 << 20,
            warn_at: None,
        };
        let page = provisioning(Some(space));
        assert_eq!(page[..12], [0, 1, 3, 8, 0, 0, 0, 7, 2, 0, 0, 0]);
        assert_eq!(page[12..], [0, 2, 3, 8, 0, 0, 0, 3, 2, 0, 0, 0]);
        assert!(provisioning(None).is_empty());
        let over = Space {
            used: 11 << 20,
            ..space
        };
        assert_eq!(provisioning(Some(over))[4..8], [0; 4], "nothing is left");
    }
}
