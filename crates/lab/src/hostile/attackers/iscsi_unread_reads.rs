//! Reads as long as the target allows, and as many, whose data are never taken.

use crate::hostile::peers::iscsi;
use crate::hostile::stage::Stage;
use crate::iscsi::protocol as p;
use std::sync::Mutex;
use std::time::Duration;

/// Sessions that are filled at a time.
const SESSIONS: u64 = 16;
/// Bytes of a read.
const READ_BYTES: u32 = 16 << 20;
/// How long a session that is full is left alone.
const REST: Duration = Duration::from_millis(200);

pub fn attack(stage: &Stage<'_>) {
    let held = Mutex::new(Vec::new());
    stage.together(SESSIONS, |_, _| {
        let mut session = iscsi::open(stage)?;
        let (_, block) = session.capacity()?;
        let cdb = p::transfer(false, 0, READ_BYTES / block);
        while session.numbers.is_open() && !stage.is_over() {
            let head = session.next_command(&cdb, &[], READ_BYTES);
            session.wire.send(head, &[])?;
            stage.did(1);
        }
        if let Ok(mut held) = held.lock() {
            held.push(session);
        }
        stage.pause(REST);
        Ok(())
    });
}
