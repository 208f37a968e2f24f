//! Connections to the TLS listener that never shake hands.

use crate::hostile::peers::{connect, silent};
use crate::hostile::stage::Stage;

pub fn attack(stage: &Stage<'_>) {
    silent::hold(stage, || connect(stage.address(), stage.places.tls));
}
