//! Many connections request the longest reads and read no responses.

use crate::hostile::peers::nbd;
use crate::hostile::stage::Stage;
use crate::nbd::protocol as p;
use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

/// Connections, each of a thread.
const CONNECTIONS: u64 = 32;
/// Reads that each asks for.
const READS: u64 = 64;
/// How long a connection that is full is left alone.
const REST: Duration = Duration::from_millis(200);

pub fn attack(stage: &Stage<'_>) {
    // The amount that was accepted before the first refusal counts.
    let held = Mutex::new(Vec::new());
    stage.together(CONNECTIONS, |_, _| {
        let mut stream = nbd::open(stage, false)?;
        for number in 0..READS {
            stream.write_all(&p::request(p::READ, 0, number, 0, nbd::LONGEST))?;
            stage.did(1);
        }
        if let Ok(mut held) = held.lock() {
            held.push(stream);
        }
        stage.pause(REST);
        Ok(())
    });
}
