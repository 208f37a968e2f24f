//! Readers of the metrics that ask and do not read.

use crate::hostile::peers::{connect, http, silent};
use crate::hostile::stage::Stage;
use std::io::Write;

pub fn attack(stage: &Stage<'_>) {
    let request = http::request("GET", "/metrics", "", "");
    silent::hold(stage, || {
        let mut stream = connect(stage.address(), stage.places.metrics)?;
        stream.write_all(&request)?;
        Ok(stream)
    });
}
