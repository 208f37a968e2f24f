//! Reinstates one session in a loop (RFC 7143, section 6.3.5), with commands in flight.

use crate::hostile::peers::iscsi;
use crate::hostile::stage::Stage;
use crate::iscsi::protocol as p;

/// Log-ins at a time, all for the same session.
const LOGINS: u64 = 4;
/// The same for all.
const ISID: [u8; 6] = [0x80, 0xff, 0xff, 0xff, 0xff, 1];
/// Reads that are in progress when the session is taken over.
const READS: u32 = 8;

pub fn attack(stage: &Stage<'_>) {
    stage.together(LOGINS, |_, _| {
        let mut session = iscsi::open_as(stage, ISID)?;
        stage.did(1);
        for _ in 0..READS {
            if session.numbers.is_open() {
                let head = session.next_command(&p::transfer(false, 0, 128), &[], 1 << 16);
                session.wire.send(head, &[])?;
            }
        }
        session.answer().map(|_| ())
    });
}
