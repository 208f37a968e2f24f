//! Commands that concern all of a big unit: each little to say, and much to do.

use crate::hostile::peers::iscsi;
use crate::hostile::stage::Stage;
use crate::iscsi::Opened;
use crate::iscsi::protocol as p;
use std::io::Result;

/// Sessions at a time.
const SESSIONS: u64 = 2;
/// Bytes that GET LBA STATUS may give.
const STATUS_BYTES: u32 = 1 << 20;
/// Commands that are in progress when the first answer is waited for.
const BATCH: u64 = 8;

/// GET LBA STATUS (SBC-4, 5.9).
fn status(lba: u64) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x9e, 0x12);
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&STATUS_BYTES.to_be_bytes());
    cdb
}

/// WRITE SAME(16) (SBC-4, 5.55), by UNMAP or not, and VERIFY(16): of 0 blocks, which are all up to the end, or of so many.
fn of_all(operation: u8, flags: u8, lba: u64, blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (operation, flags);
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// UNMAP (SBC-4, 5.39) with its parameters: the whole unit in as many ranges as it takes.
fn unmap(blocks: u64) -> ([u8; 16], Vec<u8>) {
    const RANGES_MAX: u64 = 256;
    let each = blocks.div_ceil(RANGES_MAX).min(u64::from(u32::MAX));
    let mut ranges = Vec::new();
    for number in 0..blocks.div_ceil(each).min(RANGES_MAX) {
        let at = number * each;
        ranges.extend(at.to_be_bytes());
        ranges.extend((each.min(blocks - at) as u32).to_be_bytes());
        ranges.extend([0; 4]);
    }
    let len = ranges.len() as u16;
    let mut data = (len + 6).to_be_bytes().to_vec();
    data.extend(len.to_be_bytes());
    data.extend([0; 4]);
    data.extend(ranges);
    let mut cdb = [0; 16];
    cdb[0] = 0x42;
    cdb[7..9].copy_from_slice(&(len + 8).to_be_bytes());
    (cdb, data)
}

/// SANITIZE, overwrite or block erase (SBC-4, 5.28).
fn sanitize(action: u8) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x48, action);
    cdb
}

fn send(session: &mut Opened, cdb: &[u8; 16], data: &[u8], expected: u32) -> Result<()> {
    let head = session.next_command(cdb, data, expected);
    session.wire.send(head, data)
}

pub fn attack(stage: &Stage<'_>) {
    stage.together(SESSIONS, |_, chance| {
        let mut session = iscsi::open(stage)?;
        let (blocks, block) = session.capacity()?;
        let zeroes = vec![0; block as usize];
        let (unmap_all, ranges) = unmap(blocks);
        while !stage.is_over() {
            let mut sent = 0;
            while sent < BATCH && session.numbers.is_open() {
                let lba = chance.below(blocks);
                match chance.below(8) {
                    0..3 => send(&mut session, &status(0), &[], STATUS_BYTES)?,
                    3 => send(&mut session, &unmap_all, &ranges, 0)?,
                    4 => send(&mut session, &of_all(0x93, 0x08, 0, 0), &zeroes, 0)?,
                    5 => send(&mut session, &of_all(0x93, 0, lba, u32::MAX), &zeroes, 0)?,
                    6 => send(&mut session, &of_all(0x8f, 0, 0, u32::MAX), &[], 0)?,
                    _ => send(&mut session, &sanitize(2 + chance.below(2) as u8), &[], 0)?,
                }
                sent += 1;
            }
            stage.did(sent);
            for _ in 0..sent {
                match session.answer() {
                    Ok(_) => {}
                    // Another session takes the place of one that waits, and this one is gone with its work.
                    Err(error) if iscsi::is_late(&error) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
        // What the window has no place for any more ends with the session.
        let _ = session.ask(&p::TEST_UNIT_READY, 0);
        Ok(())
    });
}
