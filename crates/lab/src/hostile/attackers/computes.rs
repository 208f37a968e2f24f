//! The control: the cost of sharing the processor with another program that does not contact the daemon.

use crate::hostile::stage::Stage;
use std::hint::black_box;

/// As many as most attackers have.
const THREADS: u64 = 16;
/// Steps between two checks whether it is over: some 10 µs.
const STEPS: u64 = 10_000;

pub fn attack(stage: &Stage<'_>) {
    stage.together(THREADS, |number, _| {
        let sum = (0..STEPS).fold(number, |sum, step| black_box(sum ^ step).rotate_left(5));
        black_box(sum);
        stage.did(1);
        Ok(())
    });
}
