//! Logins to targets that do not exist, and with invalid names.

use crate::hostile::peers::iscsi;
use crate::hostile::stage::Stage;
use crate::iscsi::{Initiator, Lun, Waiting, next_isid};

/// Connections at a time.
const CONNECTIONS: u64 = 4;

pub fn attack(stage: &Stage<'_>) {
    stage.together(CONNECTIONS, |_, chance| {
        let lun = Lun {
            target: format!("iqn.2026-11.io.convect.lab:none-{}", chance.below(1 << 20)),
            ..stage.places.lun.clone()
        };
        let name = match chance.below(3) {
            0 => "x".repeat(chance.below(300) as usize),
            1 => "nobody\u{7f} of this name".to_owned(),
            _ => iscsi::initiator().name,
        };
        let initiator = Initiator {
            name,
            digests: false,
        };
        let waiting = Waiting::over(iscsi::wire(stage)?, &lun, &initiator, next_isid())?;
        stage.did(1);
        waiting.end().map(|_| ())
    });
}
