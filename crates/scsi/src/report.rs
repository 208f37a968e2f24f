//! Reports of the target about itself: REPORT LUNS (SPC-4 6.33), REPORT SUPPORTED OPERATION CODES (6.35)
//! and TASK MANAGEMENT FUNCTIONS (6.36).

use crate::execute::{Answer, Call};
use crate::fields::{put, u16_at, u32_at};
use crate::sense::Sense;
use crate::table::{ROWS, Row, cdb_len, rows_of};

/// The list of units, as parameter data.
pub(crate) fn lun_list(numbers: &[u16]) -> Vec<u8> {
    let mut data = vec![0; 8];
    put(&mut data, 0, &(8 * numbers.len() as u32).to_be_bytes());
    for number in numbers {
        data.extend(number.to_be_bytes());
        data.extend([0; 6]);
    }
    data
}

pub(crate) fn luns(call: &Call<'_>) -> Answer {
    let allocation = u32_at(call.cdb, 6) as usize;
    // There are no well-known units (SELECT REPORT 1).
    let numbers = match call.cdb[2] {
        0 | 2 => call.luns.numbers(),
        1 => Vec::new(),
        _ => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
    };
    if allocation < 16 {
        return Err(Sense::INVALID_FIELD_IN_CDB.into());
    }
    Ok(call.give_cut(lun_list(&numbers), allocation))
}

/// Ten seconds for every command, or none recommended (SPC-4 6.35.4).
const TIMEOUTS: [u8; 12] = [0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn all_opcodes(with_timeouts: bool) -> Vec<u8> {
    let mut data = vec![0; 4];
    for row in ROWS {
        let mut flags = u8::from(row.service.is_some());
        if with_timeouts {
            flags |= 0x02;
        }
        data.extend([row.opcode, 0, 0, row.service.unwrap_or(0), 0, flags]);
        data.extend((cdb_len(row.opcode) as u16).to_be_bytes());
        if with_timeouts {
            data.extend(TIMEOUTS);
        }
    }
    let len = data.len() as u32 - 4;
    put(&mut data, 0, &len.to_be_bytes());
    data
}

fn one_opcode(row: Option<&Row>, with_timeouts: bool) -> Vec<u8> {
    let Some(row) = row else {
        return vec![0, 0x01, 0, 0];
    };
    // Supported as a standard says; CTDP.
    let mut data = vec![0, if with_timeouts { 0x83 } else { 0x03 }];
    data.extend((row.usage.len() as u16).to_be_bytes());
    data.extend(row.usage);
    if with_timeouts {
        data.extend(TIMEOUTS);
    }
    data
}

pub(crate) fn opcodes(call: &Call<'_>) -> Answer {
    let with_timeouts = call.cdb[2] & 0x80 != 0;
    let opcode = call.cdb[3];
    let service = u16_at(call.cdb, 4);
    let has_actions = rows_of(opcode).any(|row| row.service.is_some());
    let with_action = || rows_of(opcode).find(|row| row.service.map(u16::from) == Some(service));
    let data = match call.cdb[2] & 0x07 {
        0 => all_opcodes(with_timeouts),
        1 if has_actions => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
        1 => one_opcode(rows_of(opcode).next(), with_timeouts),
        2 if !has_actions => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
        2 => one_opcode(with_action(), with_timeouts),
        3 if has_actions => one_opcode(with_action(), with_timeouts),
        3 => one_opcode(
            rows_of(opcode).next().filter(|_| service == 0),
            with_timeouts,
        ),
        _ => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
    };
    Ok(call.give_cut(data, u32_at(call.cdb, 6) as usize))
}

/// ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET, TARGET RESET.
pub(crate) fn functions(call: &Call<'_>) -> Answer {
    let allocation = u32_at(call.cdb, 6) as usize;
    if allocation < 4 {
        return Err(Sense::INVALID_FIELD_IN_CDB.into());
    }
    let extended = call.cdb[2] & 0x80 != 0;
    let mut data = vec![0xda, 0, 0, 0];
    if extended {
        data[3] = 12;
        data.extend([0; 12]);
    }
    Ok(call.give_cut(data, allocation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_listed_in_eight_bytes_each() {
        let list = lun_list(&[0, 7]);
        assert_eq!(list[..4], [0, 0, 0, 16]);
        assert_eq!(list[16..18], [0, 7]);
    }

    #[test]
    fn the_list_of_commands_is_as_long_as_it_says() {
        for with_timeouts in [false, true] {
            let list = all_opcodes(with_timeouts);
            assert_eq!(u32_at(&list, 0) as usize, list.len() - 4);
            let one = if with_timeouts { 20 } else { 8 };
            assert_eq!(list.len() - 4, one * ROWS.len());
        }
    }
}
