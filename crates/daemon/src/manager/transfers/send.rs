//! Sends a snapshot as a full or incremental stream (docs/stream.md).

use super::Transfers;
use crate::control::PoolCalls;
use crate::jobs::OwnJob;
use crate::manager::Result;
use crate::manager::uses::Use;
use crate::mapping::ToApi;
use crate::volume_io::{IN_FLIGHT, VolumeIo};
use crate::{Control, mapping};
use api::v1::{Problem, ProblemCode};
use engine::{ChangedRange, SnapshotStatus};
use std::collections::VecDeque;
use std::sync::Arc;
use stream::{Begin, DATA_MAX, Encoder, Token};
use units::{PoolId, SnapshotId};

/// Ranges per query.
const RANGES: usize = 4096;
/// Maximum bytes per read.
const READ_MAX: usize = 4 << 20;

/// A snapshot being sent, chunk by chunk.
pub struct Sending {
    control: Arc<dyn Control>,
    pool: String,
    volume: String,
    snapshot: String,
    from: Option<String>,
    io: VolumeIo,
    /// None once the end record was written.
    encoder: Option<Encoder>,
    /// Encoded data not returned yet.
    ready: Vec<u8>,
    ranges: VecDeque<ChangedRange>,
    /// Where to query more ranges, in bytes.
    next: Option<u64>,
    /// Bytes read from the volume.
    read: u64,
    job: OwnJob,
    /// Protect the snapshots from deletion.
    _uses: Vec<Use>,
}

fn identity(snapshot: &SnapshotStatus) -> Result<SnapshotId> {
    snapshot.identity.parse().map_err(|_| {
        let text = format!(
            "snapshot {}@{} has no identity and cannot be sent",
            snapshot.volume, snapshot.name
        );
        Problem::new(ProblemCode::Damaged, text)
    })
}

impl Transfers {
    /// Begins to send a snapshot: fully, incrementally from `from` (NAME, or VOLUME@NAME), or the
    /// rest for the receiver's token `resume`.
    ///
    /// # Errors
    /// When the snapshot does not exist, is not a descendant of `from`, or the token belongs to
    /// another snapshot.
    pub fn send(
        &self,
        (pool, volume, snapshot): (&str, &str, &str),
        from: Option<&str>,
        resume: Option<&str>,
    ) -> Result<Sending> {
        let resume = resume.map(|text| text.parse::<Token>()).transpose();
        let resume = resume.map_err(|error| Problem::invalid(format!("'resume': {error}")))?;
        if from.is_some() && resume.is_some() {
            let text = "the token determines the base snapshot: remove 'from'";
            return Err(Problem::invalid(text.to_owned()));
        }
        // Exclude deletions until the snapshots are protected.
        let changes = self.registry.begin_change();
        let known = self.registry.snapshot_list(pool, None)?;
        let (to, to_id) = find(&known, volume, snapshot)?;
        let from = match (from, &resume) {
            (Some(from), _) => {
                let (of, name) = from.split_once('@').unwrap_or((volume, from));
                Some(find(&known, of, name)?)
            }
            (None, Some(token)) => find_base(&known, volume, (snapshot, to_id), token)?,
            (None, None) => None,
        };
        if from.is_some_and(|(_, id)| id == to_id) {
            return Err(Problem::invalid(format!(
                "{volume}@{snapshot} is its own base: choose an earlier snapshot"
            )));
        }
        let volumes = self.registry.volume_list(pool)?;
        let lba_size = volumes.iter().find(|known| known.name == volume);
        let start = resume.map_or(0, |token| token.done);
        let begin = Begin {
            pool: self.pool_id(pool)?,
            to: to_id,
            from: from.map(|(_, id)| id),
            size: to.size,
            start,
            lba_size: lba_size.map_or(512, |known| known.lba_size),
            volume: volume.to_owned(),
            snapshot: snapshot.to_owned(),
        };
        let named = format!("{volume}@{snapshot}");
        let device = self.registry.volume_open(pool, &named, None)?;
        let mut ready = Vec::new();
        let encoder = Encoder::begin(&begin, &mut ready);
        let from = from.map(|(known, _)| format!("{}@{}", known.volume, known.name));
        let used = from.iter().chain([&named]);
        let mut sending = Sending {
            _uses: used.map(|name| self.uses.enter(pool, name)).collect(),
            control: Arc::clone(self.registry.control()),
            pool: pool.to_owned(),
            volume: volume.to_owned(),
            snapshot: snapshot.to_owned(),
            from,
            io: VolumeIo::new(device),
            encoder: Some(encoder),
            ready,
            ranges: VecDeque::new(),
            next: Some(start),
            read: 0,
            job: self.jobs.begin("send", &format!("{pool}/{named}"), to.size),
        };
        drop(changes);
        // Report errors of the snapshots before the stream begins.
        match sending.look() {
            Ok(()) => Ok(sending),
            Err(problem) => {
                sending.job.end(Err(problem.message.clone()));
                Err(problem)
            }
        }
    }

    fn pool_id(&self, pool: &str) -> Result<PoolId> {
        let status = self.registry.pool_status(pool)?;
        status.id.parse().map_err(|_| {
            let text = format!("the id of pool {pool} is not a number");
            Problem::new(ProblemCode::Damaged, text)
        })
    }
}

/// A snapshot and its identity.
type IdentifiedSnapshot<'a> = (&'a SnapshotStatus, SnapshotId);

fn find<'a>(all: &'a [SnapshotStatus], volume: &str, name: &str) -> Result<IdentifiedSnapshot<'a>> {
    let mut found = all.iter();
    match found.find(|known| known.volume == volume && known.name == name) {
        Some(found) => Ok((found, identity(found)?)),
        None => Err(Problem::not_found(format!(
            "volume {volume} has no snapshot '{name}': see `convect snapshot list`"
        ))),
    }
}

/// The base snapshot of a token's stream, if it is incremental.
fn find_base<'a>(
    all: &'a [SnapshotStatus],
    volume: &str,
    (snapshot, to): (&str, SnapshotId),
    token: &Token,
) -> Result<Option<IdentifiedSnapshot<'a>>> {
    if token.to != to {
        return Err(Problem::invalid(format!(
            "the token does not belong to {volume}@{snapshot}: send the snapshot that was begun"
        )));
    }
    let Some(from) = token.from else {
        return Ok(None);
    };
    let mut held = all
        .iter()
        .filter(|known| known.identity == from.to_string());
    // Prefer the volume's own snapshot to that of another volume that received the same.
    let own = held.clone().find(|known| known.volume == volume);
    match own.or_else(|| held.next()) {
        Some(found) => Ok(Some((found, from))),
        None => Err(Problem::not_found(
            "the base snapshot of the token's stream no longer exists: \
         send incrementally from another common snapshot, or fully"
                .to_owned(),
        )),
    }
}

impl Sending {
    /// Queries more ranges.
    fn look(&mut self) -> Result<()> {
        let Some(start) = self.next else {
            return Ok(());
        };
        let found = self.control.snapshot_diff(
            &self.pool,
            &self.volume,
            self.from.as_deref(),
            Some(&self.snapshot),
            start,
            RANGES,
        );
        let found = found.map_err(ToApi::to_api)?;
        self.ranges.extend(found.ranges);
        self.next = found.next;
        Ok(())
    }

    /// The next bytes of the stream; none at its end. Blocks.
    pub fn next_part(&mut self) -> Option<Vec<u8>> {
        if !self.ready.is_empty() {
            return Some(std::mem::take(&mut self.ready));
        }
        let Some(mut encoder) = self.encoder.take() else {
            // The last chunk was sent.
            self.job.end(Ok(()));
            return None;
        };
        let mut out = Vec::new();
        let encoded = match self.job.is_cancelled() {
            true => Err(Problem::new(ProblemCode::Refused, "the job was cancelled")),
            false => self.encode_some(&mut encoder, &mut out),
        };
        match encoded {
            Ok(true) => self.encoder = Some(encoder),
            Ok(false) => encoder.end(self.read, &mut out),
            Err(problem) => {
                let Self {
                    pool,
                    volume,
                    snapshot,
                    ..
                } = self;
                tracing::warn!("sending {pool}/{volume}@{snapshot}: {problem}");
                self.job.end(Err(problem.message.clone()));
                out.clear();
                encoder.failed(&problem.message, &mut out);
            }
        }
        Some(out)
    }

    /// Encodes some ranges; false when there are no more. Encodes nothing on failure.
    fn encode_some(&mut self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<bool> {
        while self.ranges.is_empty() && self.next.is_some() {
            self.look()?;
        }
        let mut pieces: Vec<ChangedRange> = Vec::new();
        let mut reads = Vec::new();
        let mut left = READ_MAX;
        while let Some(range) = self.ranges.front_mut() {
            if pieces.len() == IN_FLIGHT || left == 0 {
                break;
            }
            let most = match range.data {
                true => left.min(DATA_MAX) as u64,
                false => range.len,
            };
            let piece = ChangedRange {
                len: range.len.min(most),
                ..*range
            };
            if piece.data {
                reads.push((piece.offset, piece.len as usize));
                left -= piece.len as usize;
            }
            pieces.push(piece);
            (range.offset, range.len) = (range.offset + piece.len, range.len - piece.len);
            if range.len == 0 {
                self.ranges.pop_front();
            }
        }
        let read = self.io.read(&reads);
        let read = read.map_err(|error| mapping::io_problem("the snapshot", &error))?;
        let mut read = read.into_iter();
        if let Some(last) = pieces.last() {
            self.job.advance(last.offset + last.len);
        }
        for piece in &pieces {
            if !piece.data {
                encoder.zeroes(piece.offset, piece.len, out);
            } else if let Some(bytes) = read.next() {
                self.read += bytes.len() as u64;
                encoder.data(piece.offset, &bytes, out);
            }
        }
        Ok(!pieces.is_empty())
    }
}
