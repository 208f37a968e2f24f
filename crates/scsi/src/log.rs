//! LOG SENSE (SPC-4 6.8, 7.3).

use crate::execute::{Answer, Call};
use crate::fields::u16_at;
use crate::sense::Sense;

const SUPPORTED: u8 = 0x00;
const EXCEPTIONS: u8 = 0x2f;

pub(crate) fn sense(call: &Call<'_>) -> Answer {
    let (code, sub_page) = (call.cdb[2] & 0x3f, call.cdb[3]);
    if sub_page != 0 || call.cdb[1] & 0x03 != 0 {
        return Err(Sense::INVALID_FIELD_IN_CDB.into());
    }
    let body = match code {
        SUPPORTED => vec![SUPPORTED, EXCEPTIONS],
        // Parameter 0000h: no exception, no temperature.
        EXCEPTIONS => vec![0, 0, 0x03, 4, 0, 0, 0xff, 0],
        _ => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
    };
    let mut data = vec![code, 0];
    data.extend((body.len() as u16).to_be_bytes());
    data.extend(body);
    Ok(call.give_cut(data, usize::from(u16_at(call.cdb, 7))))
}
