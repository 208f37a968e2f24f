//! Reading every block after a restart.

use super::ledger::Ledger;
use crate::content::{self, BLOCK};
use crate::failure::{Failure, Result, While};
use crate::nbd::{Client, Request};
use std::path::Path;

/// Blocks of one read.
const READ_BLOCKS: u64 = 64;
/// Reads outstanding.
const DEPTH: u64 = 16;

/// Checks every block of a volume against its ledger; returns how many there were.
pub fn every_block(socket: &Path, export: &str, ledger: &mut Ledger) -> Result<u64> {
    let doing = || "cannot read the volume after the restart".to_owned();
    let mut client = Client::connect(socket, export).during(doing)?;
    let wanted = ledger.len() * BLOCK as u64;
    if client.size != wanted {
        return Err(Failure::new(format!(
            "the volume has {} bytes, not {wanted}",
            client.size
        )));
    }
    let reads = ledger.len().div_ceil(READ_BLOCKS);
    let mut sent = 0;
    for received in 0..reads {
        while sent < reads && sent < received + DEPTH {
            let begin = sent * READ_BLOCKS;
            let blocks = READ_BLOCKS.min(ledger.len() - begin);
            let length = blocks as u32 * BLOCK as u32;
            let request = Request::Read {
                offset: begin * BLOCK as u64,
                length,
            };
            client.send(sent, &request).during(doing)?;
            sent += 1;
        }
        let reply = client.receive().during(doing)?;
        if reply.error != 0 {
            let block = reply.cookie * READ_BLOCKS;
            return Err(Failure::new(format!(
                "after the restart, reading at block {block} gave error {}",
                reply.error
            )));
        }
        for (index, bytes) in reply.data.chunks_exact(BLOCK).enumerate() {
            let block = reply.cookie * READ_BLOCKS + index as u64;
            let checked =
                content::read(block, bytes).and_then(|found| ledger.check_survivor(block, found));
            checked.during(|| format!("after the restart, block {block}"))?;
        }
    }
    Ok(ledger.len())
}
