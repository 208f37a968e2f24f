//! Connections to the metrics listener that never ask.

use crate::hostile::peers::{connect, silent};
use crate::hostile::stage::Stage;

pub fn attack(stage: &Stage<'_>) {
    silent::hold(stage, || connect(stage.address(), stage.places.metrics));
}
