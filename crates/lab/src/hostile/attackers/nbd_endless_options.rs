//! Haggles about options without end.

use crate::hostile::peers::nbd;
use crate::hostile::stage::Stage;
use crate::nbd::protocol as p;
use std::io::{ErrorKind, Read, Write};

/// Connections at a time.
const CONNECTIONS: u64 = 4;
/// Options per burst.
const BATCH: usize = 64;

pub fn attack(stage: &Stage<'_>) {
    let data = p::export_data(&stage.places.nbd_export);
    let batch = [p::option(p::OPT_LIST, &[]), p::option(p::OPT_INFO, &data)].concat();
    let batch = batch.repeat(BATCH / 2);
    stage.together(CONNECTIONS, |_, _| {
        let mut stream = nbd::greet(stage)?;
        let mut answers = vec![0; 1 << 20];
        while !stage.is_over() {
            stream.write_all(&batch)?;
            stage.did(BATCH as u64);
            if stream.read(&mut answers)? == 0 {
                return Err(ErrorKind::ConnectionReset.into());
            }
        }
        Ok(())
    });
}
