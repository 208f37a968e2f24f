//! Random PDUs of a session: opcodes, flags, lengths, numbers and commands.

use crate::chance::Chance;
use crate::hostile::peers::iscsi;
use crate::hostile::stage::Stage;
use crate::iscsi::protocol::{self as p, HEAD_LEN, Head};
use std::io::Write;

/// Sessions at a time.
const SESSIONS: u64 = 4;
/// PDUs of each.
const PDUS: u64 = 64;
/// Most bytes of data of a PDU.
const DATA_MAX: u64 = 8192;
/// Opcodes of initiators, and one of a target.
const OPCODES: [u8; 9] = [0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10, 0x21];

fn random(chance: &mut Chance, len: usize) -> Vec<u8> {
    (0..len).map(|_| chance.next() as u8).collect()
}

fn head(chance: &mut Chance) -> Head {
    let bytes = random(chance, HEAD_LEN);
    let mut head = Head(bytes.try_into().expect("as many bytes as a header has"));
    head.0[0] = OPCODES[chance.below(OPCODES.len() as u64) as usize];
    if chance.below(4) == 0 {
        head.0[0] |= p::IMMEDIATE;
    }
    // No additional headers, and a unit that is there, mostly.
    if chance.below(16) > 0 {
        head.0[4] = 0;
        head.0[8..16].fill(0);
    }
    // A length that the command itself might have, mostly.
    if chance.below(8) > 0 {
        head = head.word(20, chance.below(1 << 17) as u32);
    }
    head
}

pub fn attack(stage: &Stage<'_>) {
    stage.together(SESSIONS, |_, chance| {
        let mut session = iscsi::open(stage)?;
        for _ in 0..PDUS {
            let mut head = head(chance);
            if chance.below(8) > 0 && head.0[0] & p::IMMEDIATE == 0 {
                head = session.numbers.stamp(head);
            }
            let len = chance.below(DATA_MAX) as usize;
            let data = random(chance, len);
            match chance.below(16) {
                0 => session.wire.stream.write_all(&head.0)?,
                _ => session.wire.send(head, &data)?,
            }
            stage.did(1);
        }
        iscsi::drain(stage, &mut session)
    });
}
