//! Pings with the longest data whose echoes are never read.

use crate::hostile::peers::iscsi;
use crate::hostile::stage::Stage;
use crate::iscsi::protocol::{self as p, Head};
use std::sync::Mutex;
use std::time::Duration;

/// Sessions that are filled at a time.
const SESSIONS: u64 = 16;
/// How long a session that is full is left alone.
const REST: Duration = Duration::from_millis(200);

pub fn attack(stage: &Stage<'_>) {
    let held = Mutex::new(Vec::new());
    stage.together(SESSIONS, |_, _| {
        let mut session = iscsi::open(stage)?;
        let data = vec![0x5a; session.segment_max.min(p::SEGMENT_MAX)];
        while session.numbers.is_open() && !stage.is_over() {
            let tag = session.numbers.command;
            let head = Head::new(p::NOP_OUT, p::FINAL, tag).word(20, p::NO_TAG);
            let head = session.numbers.stamp(head);
            match session.wire.send(head, &data) {
                Ok(()) => stage.did(1),
                Err(error) if iscsi::is_late(&error) => break,
                Err(error) => return Err(error),
            }
        }
        if let Ok(mut held) = held.lock() {
            held.push(session);
        }
        stage.pause(REST);
        Ok(())
    });
}
