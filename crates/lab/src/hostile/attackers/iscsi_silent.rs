//! Connections that never log in.

use crate::hostile::peers::{connect, silent};
use crate::hostile::stage::Stage;

pub fn attack(stage: &Stage<'_>) {
    silent::hold(stage, || connect(stage.address(), stage.places.lun.portal));
}
