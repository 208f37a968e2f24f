//! Pipelining of a host's write: the drive gets the first blocks of a long one while the next are copied.

use super::slow_path::Piece;
use crate::shard::state::Shard;
use crate::space::{Class, Run};
use crate::vdrive::{Purpose, all_ended};
use block::{DmaBuf, DriveError, IoBuf, Lent};
use futures_util::future::join_all;
use units::BLOCK;

/// Blocks of a step.
const STEP: usize = 64;

impl Shard {
    /// Sends the whole blocks of a piece to their slots. Returns the checksums of the data sent.
    ///
    /// # Errors
    /// A drive's error, once nothing is in flight any longer.
    pub(super) async fn send_piece(
        &self,
        runs: &[Run],
        piece: Piece,
        buf: &IoBuf,
    ) -> Result<Vec<u32>, DriveError> {
        let count = piece.len / BLOCK;
        // Compared with a slow drive's latency, the copy is negligible, and the drive should get the whole write in one request.
        let is_fast = |run: &Run| self.class(run.place) == Class::Fast;
        if count <= STEP || !runs.iter().all(is_fast) {
            let (data, crcs) = self.take_in(buf, piece.at, count);
            let sent = self.write_runs(runs, &data, Purpose::Hosts).await;
            return sent.map(|()| crcs);
        }
        let steps = steps(runs);
        let sent = steps.iter().enumerate().map(|(index, runs)| async move {
            // In between others have their turn, and the drive gets the started part.
            for _ in 0..index {
                self.handle.yield_now().await;
            }
            let count = runs.iter().map(|run| run.count).sum();
            let (data, crcs) = self.take_in(buf, piece.at + index * STEP * BLOCK, count);
            let sent = self.write_runs(runs, &data, Purpose::Hosts).await;
            (crcs, sent)
        });
        let (crcs, sent): (Vec<_>, Vec<_>) = join_all(sent).await.into_iter().unzip();
        all_ended(sent).map(|()| crcs.concat())
    }

    /// A number of blocks of `buf` from `at` (bytes) on, with their checksums.
    fn take_in(&self, buf: &IoBuf, at: usize, count: usize) -> (DmaBuf, Vec<u32>) {
        let mut data = self.handle.dma().get(count * BLOCK);
        let mut lent = Lent::from(&mut data[..]);
        let blocks = lent.blocks().enumerate();
        let fill = |(index, mut block): (usize, Lent<'_>)| block.fill_from(buf, at + index * BLOCK);
        let crcs = blocks.map(fill).collect();
        (data, crcs)
    }
}

/// Runs, cut so that each step has [`STEP`] blocks, but for the last one.
fn steps(runs: &[Run]) -> Vec<Vec<Run>> {
    let mut steps = Vec::new();
    let (mut step, mut room) = (Vec::new(), STEP);
    for run in runs {
        let mut run = *run;
        while run.count > 0 {
            let count = run.count.min(room);
            step.push(Run { count, ..run });
            run.place = run.place.plus(count as u64);
            run.count -= count;
            room -= count;
            if room == 0 {
                steps.push(std::mem::take(&mut step));
                room = STEP;
            }
        }
    }
    if !step.is_empty() {
        steps.push(step);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Place, VdriveId};

    #[test]
    fn steps_have_all_blocks_in_their_order() {
        let place = |block| Place::new(VdriveId(1), block);
        let run = |block, count| Run {
            place: place(block),
            count,
        };
        let runs = [
            run(500, 10),
            run(0, 2 * STEP),
            run(300, STEP - 10),
            run(9, 1),
        ];
        let of = |steps: &[Vec<Run>]| -> Vec<Vec<(Place, usize)>> {
            let plain = |step: &Vec<Run>| step.iter().map(|run| (run.place, run.count)).collect();
            steps.iter().map(plain).collect()
        };
        let right = [
            vec![(place(500), 10), (place(0), STEP - 10)],
            vec![(place(STEP as u64 - 10), STEP)],
            vec![(place(2 * STEP as u64 - 10), 10), (place(300), STEP - 10)],
            vec![(place(9), 1)],
        ];
        assert_eq!(of(&steps(&runs)), right);
        assert_eq!(of(&steps(&runs[1..2])).len(), 2);
    }
}
