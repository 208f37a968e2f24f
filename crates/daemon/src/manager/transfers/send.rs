//! Sending a snapshot as a full or incremental stream (docs/stream.md).

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

/// Ranges that are asked for at a time.
const RANGES: usize = 4096;
/// Bytes of data that are read at a time.
const READ_MAX: usize = 4 << 20;

/// A snapshot that is being sent, part by part.
pub struct Sending {
    control: Arc<dyn Control>,
    pool: String,
    volume: String,
    snapshot: String,
    from: Option<String>,
    io: VolumeIo,
    /// None when the last record was written.
    encoder: Option<Encoder>,
    /// What was encoded and not given yet.
    ready: Vec<u8>,
    ranges: VecDeque<ChangedRange>,
    /// Where to look for more ranges, in bytes.
    next: Option<u64>,
    /// Bytes read of the volume.
    read: u64,
    job: OwnJob,
    /// Kept from being deleted.
    _uses: Vec<Use>,
}

fn identity(snapshot: &SnapshotStatus) -> Result<SnapshotId> {
    snapshot.identity.parse().map_err(|_| {
        let text = format!(
            "snapshot {}@{} has no identity that can be sent",
            snapshot.volume, snapshot.name
        );
        Problem::new(ProblemCode::Damaged, text)
    })
}

impl Transfers {
    /// Begins to send a snapshot: all of it, or what it has otherwise than `from` (NAME, or
    /// VOLUME@NAME), or what the volume with the token `resume` still lacks.
    ///
    /// # Errors
    /// When there is no such snapshot, it does not stand on `from`, or the token is of another.
    pub fn send(
        &self,
        (pool, volume, snapshot): (&str, &str, &str),
        from: Option<&str>,
        resume: Option<&str>,
    ) -> Result<Sending> {
        let resume = resume.map(|text| text.parse::<Token>()).transpose();
        let resume = resume.map_err(|error| Problem::invalid(format!("'resume': {error}")))?;
        if from.is_some() && resume.is_some() {
            let text = "the token says from which snapshot the stream goes: leave 'from' out";
            return Err(Problem::invalid(text.to_owned()));
        }
        // Nothing of it is deleted between the look and the use.
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
                "{volume}@{snapshot} has nothing otherwise than itself: choose a snapshot before it"
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
        // Whatever is wrong with the snapshots is told before the stream begins.
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
            let text = format!("the id of pool {pool} is no number");
            Problem::new(ProblemCode::Damaged, text)
        })
    }
}

/// A snapshot and what it holds.
type Known<'a> = (&'a SnapshotStatus, SnapshotId);

fn find<'a>(all: &'a [SnapshotStatus], volume: &str, name: &str) -> Result<Known<'a>> {
    let mut found = all.iter();
    match found.find(|known| known.volume == volume && known.name == name) {
        Some(found) => Ok((found, identity(found)?)),
        None => Err(Problem::not_found(format!(
            "volume {volume} has no snapshot '{name}': see `convect snapshot list`"
        ))),
    }
}

/// The snapshot that a token's stream goes from, if it goes from one.
fn find_base<'a>(
    all: &'a [SnapshotStatus],
    volume: &str,
    (snapshot, to): (&str, SnapshotId),
    token: &Token,
) -> Result<Option<Known<'a>>> {
    if token.to != to {
        return Err(Problem::invalid(format!(
            "the token is of another snapshot than {volume}@{snapshot}: send the one that was begun"
        )));
    }
    let Some(from) = token.from else {
        return Ok(None);
    };
    let mut held = all
        .iter()
        .filter(|known| known.identity == from.to_string());
    // The volume's own rather than another's that received the same.
    let own = held.clone().find(|known| known.volume == volume);
    match own.or_else(|| held.next()) {
        Some(found) => Ok(Some((found, from))),
        None => Err(Problem::not_found("the snapshot that the token's stream goes from is no more: send from another that both \
             have, or the whole"
                .to_owned(),
        )),
    }
}

impl Sending {
    /// Asks for more ranges.
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

    /// The next bytes of the stream; none when that was all. It blocks.
    pub fn next_part(&mut self) -> Option<Vec<u8>> {
        if !self.ready.is_empty() {
            return Some(std::mem::take(&mut self.ready));
        }
        let Some(mut encoder) = self.encoder.take() else {
            // What was given last was taken.
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

    /// Encodes some ranges; false when there are none any more. Nothing is encoded when that fails.
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
