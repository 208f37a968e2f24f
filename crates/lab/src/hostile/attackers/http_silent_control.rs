//! Connections to the control socket that never ask.

use crate::hostile::peers::{connect_unix, silent};
use crate::hostile::stage::Stage;

pub fn attack(stage: &Stage<'_>) {
    silent::hold(stage, || connect_unix(&stage.places.control));
}
