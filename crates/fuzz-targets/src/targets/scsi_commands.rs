//! SCSI commands, one after another, from an initiator with one unit, beside a unit of another initiator.
//!
//! Of each command in the input two bytes are its LUN and how much data follows (in sixteen bytes),
//! sixteen are its CDB. Reading the other unit is a failure.

use super::scsi_unit::{HIDDEN, data_out, frozen_loop, nexus, single_lun, unit};
use crate::memory::bounded;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Bytes of a command without its data: LUN, length, CDB.
const COMMAND: usize = 18;
/// The units have 64 KiB each, and no command takes more than 8 MiB.
const LIMIT: usize = 16 << 20;
/// Bytes in a row that show that a block of the other unit was read.
const LEAK: [u8; 512] = [HIDDEN; 512];

pub(crate) fn run(data: &[u8]) {
    bounded(LIMIT, || commands(data));
}

fn commands(data: &[u8]) {
    let Some(handle) = frozen_loop() else {
        return;
    };
    let granted = nexus(&handle, &unit("granted", 0), "iqn.a");
    // It exists, and this initiator has no LUN for it.
    let _hidden = nexus(&handle, &unit("hidden", HIDDEN), "iqn.b");
    let luns = single_lun(&granted);
    let mut rest = data;
    while rest.len() >= COMMAND {
        let (head, after) = rest.split_at(COMMAND);
        let lun = u16::from(head[0] & 1);
        let len = (usize::from(head[1]) * 16).min(after.len());
        let (out, after) = after.split_at(len);
        rest = after;
        let mut cdb = [0; 16];
        cdb.copy_from_slice(&head[2..]);
        let stop = scsi::Stop::default();
        let mut execution =
            pin!(luns.execute(Some(lun), &cdb, data_out(out), granted.generation(), &stop));
        let polled = execution
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Some(response)) = polled {
            let bytes = response.data.as_bytes().unwrap_or(&[]);
            let leaked = !out.contains(&HIDDEN) && bytes.windows(LEAK.len()).any(|all| all == LEAK);
            assert!(
                !leaked || data.contains(&HIDDEN),
                "a command returned data of a unit that the initiator may not access"
            );
        }
        handle.run_ready(100);
    }
}
