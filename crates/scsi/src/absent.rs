//! Commands to a unit that is not there, or not for this initiator (SPC-4 table 153, SAM-5 5.11).

use crate::execute::{Answer, Reply};
use crate::fields::{u8_at, u16_at, u32_at};
use crate::inquiry;
use crate::report::lun_list;
use crate::sense::Sense;
use block::IoBuf;

fn give(mut data: Vec<u8>, allocation: usize) -> Answer {
    data.truncate(allocation);
    let data = IoBuf::from_bytes(data.into_boxed_slice());
    Ok(Reply {
        length: data.len() as u64,
        data,
    })
}

/// The response of an absent unit: the list of existing units, an INQUIRY that says that none is here, or an error.
pub(crate) fn answer(cdb: &[u8; 16], numbers: &[u16]) -> Answer {
    match cdb[0] {
        0xa0 => give(lun_list(numbers), u32_at(cdb, 6) as usize),
        0x12 if cdb[1] & 0x01 == 0 && cdb[2] == 0 => {
            give(inquiry::absent(), usize::from(u16_at(cdb, 3)))
        }
        0x03 => {
            let data = Sense::UNIT_NOT_SUPPORTED.encode(cdb[1] & 0x01 != 0);
            give(data, usize::from(u8_at(cdb, 4)))
        }
        _ => Err(Sense::UNIT_NOT_SUPPORTED.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_not_there_is_told_by_the_name_of_who_would_have_it() {
        let mut cdb = [0; 16];
        (cdb[0], cdb[4]) = (0x12, 36);
        let Ok(reply) = answer(&cdb, &[5]) else {
            panic!("it is answered")
        };
        let data = reply.data.as_bytes().unwrap_or(&[]).to_vec();
        assert_eq!((data.len(), data[0], data[4]), (36, 0x7f, 91));
        assert_eq!(&data[8..], b"CONVECT VOLUME          1   ");
        cdb[4] = 255;
        let length = answer(&cdb, &[5]).map(|reply| reply.length);
        assert_eq!(length.ok(), Some(96), "as much as it says");
    }
}
