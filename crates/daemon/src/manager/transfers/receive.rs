//! Receives a stream into a volume, resumable from the last flushed position (docs/stream.md).

use super::Transfers;
use crate::control::PoolCalls;
use crate::jobs::OwnJob;
use crate::manager::Result;
use crate::manager::uses::Use;
use crate::mapping;
use crate::names::check_name;
use crate::volume_io::VolumeIo;
use api::v1::{self, Problem, ProblemCode};
use block::IoError;
use engine::ReceiveSpec;
use std::sync::Arc;
use stream::{Begin, Decoder, Record, StreamError, Totals};

/// Interval in stream bytes at which data is flushed and progress is stored.
const MARK_BYTES: u64 = 64 << 20;

/// A stream being received. All calls may block.
pub struct Receiving {
    transfers: Arc<Transfers>,
    pool: String,
    volume: String,
    force: bool,
    decoder: Decoder,
    target: Option<Target>,
    /// Bytes of the stream received.
    bytes: u64,
    totals: Option<Totals>,
}

/// The volume being written.
struct Target {
    io: VolumeIo,
    /// Contiguous bytes from the start that the pool has recorded as received.
    done: u64,
    /// Stream position up to there.
    marked: u64,
    job: OwnJob,
    /// Protects the volume from other operations.
    _use: Use,
}

impl Transfers {
    /// Begins to receive a stream into a volume. Nothing is changed before its first record has
    /// arrived. With `force` the volume is rolled back to the stream's base snapshot.
    ///
    /// # Errors
    /// When the volume name is invalid.
    pub fn receive(self: &Arc<Self>, pool: &str, volume: &str, force: bool) -> Result<Receiving> {
        check_name("a volume", volume)?;
        Ok(Receiving {
            transfers: Arc::clone(self),
            pool: pool.to_owned(),
            volume: volume.to_owned(),
            force,
            decoder: Decoder::default(),
            target: None,
            bytes: 0,
            totals: None,
        })
    }
}

impl Receiving {
    /// Processes more bytes of the stream.
    ///
    /// # Errors
    /// When they are invalid or cannot be written: [`Receiving::give_up`] must follow.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let job = self.target.as_ref().map(|target| &target.job);
        if job.is_some_and(OwnJob::is_cancelled) {
            return Err(Problem::new(ProblemCode::Refused, "the job was cancelled"));
        }
        self.bytes += bytes.len() as u64;
        self.decoder.push(bytes);
        while let Some(record) = self.decoder.next_record().map_err(|error| bad(&error))? {
            self.carry_out(record)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Begin(begin) => self.begin(&begin),
            Record::Data { offset, bytes } => self.write(|io| io.write(offset, bytes)),
            Record::Zeroes { offset, len } => self.write(|io| io.write_zeroes(offset, len)),
            Record::End(totals) => {
                self.totals = Some(totals);
                Ok(())
            }
            Record::Failed(why) => Err(Problem::new(
                ProblemCode::Io,
                format!("the sender failed: {why}"),
            )),
        }
    }

    fn begin(&mut self, begin: &Begin) -> Result<()> {
        let (pool, volume) = (&self.pool, &self.volume);
        let spec = ReceiveSpec {
            snapshot: begin.snapshot.clone(),
            to: begin.to,
            from: begin.from,
            size: begin.size,
            lba_size: begin.lba_size,
            start: begin.start,
        };
        let transfers = &self.transfers;
        let _changes = transfers.registry.begin_change();
        transfers.exports.check_not_offered(pool, volume)?;
        let registry = &transfers.registry;
        let done = registry.receive_begin(pool, volume, &spec, self.force)?;
        let device = registry.volume_open(pool, volume, None)?;
        self.target = Some(Target {
            io: VolumeIo::new(device),
            done,
            marked: self.bytes,
            job: transfers
                .jobs
                .begin("receive", &format!("{pool}/{volume}"), begin.size),
            _use: transfers.uses.enter(pool, volume),
        });
        Ok(())
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut VolumeIo) -> std::result::Result<(), IoError>,
    ) -> Result<()> {
        if let Some(target) = &mut self.target {
            let volume = format!("volume {}/{}", self.pool, self.volume);
            write(&mut target.io).map_err(|error| mapping::io_problem(&volume, &error))?;
            target.job.advance(self.decoder.position());
            if self.bytes - target.marked >= MARK_BYTES {
                return self.mark();
            }
        }
        Ok(())
    }

    /// Flushes written data and stores the progress.
    fn mark(&mut self) -> Result<()> {
        let Some(target) = &mut self.target else {
            return Ok(());
        };
        let (pool, volume, registry) = (&self.pool, &self.volume, &self.transfers.registry);
        let position = self.decoder.position();
        let flushed = target.io.flush();
        flushed.map_err(|error| mapping::io_problem(&format!("volume {pool}/{volume}"), &error))?;
        target.marked = self.bytes;
        if position > target.done {
            registry.receive_mark(pool, volume, position)?;
            target.done = position;
        }
        Ok(())
    }

    /// Ends the stream: creates the snapshot if everything was verified.
    ///
    /// # Errors
    /// When the stream is incomplete or the snapshot cannot be created; [`Receiving::give_up`] must
    /// follow.
    pub fn finish(&mut self) -> Result<v1::Received> {
        self.decoder.end().map_err(|error| bad(&error))?;
        self.mark()?;
        let (pool, volume) = (&self.pool, &self.volume);
        let taken = self.transfers.registry.receive_end(pool, volume)?;
        let snapshot = taken.into_iter().next().map(|taken| taken.name);
        let snapshot = snapshot.unwrap_or_default();
        tracing::info!("received {pool}/{volume}@{snapshot}");
        if let Some(target) = &self.target {
            target.job.end(Ok(()));
        }
        let totals = self.totals.unwrap_or_default();
        Ok(v1::Received {
            pool: pool.clone(),
            volume: volume.clone(),
            snapshot,
            data: totals.data,
            zeroes: totals.zeroes,
            stream: self.bytes,
        })
    }

    /// Stores the progress. Returns the problem, with the token for resuming.
    pub fn give_up(mut self, problem: Problem) -> Problem {
        if let Err(other) = self.mark() {
            tracing::warn!("receiving {}/{}: {other}", self.pool, self.volume);
        }
        if let Some(target) = &self.target {
            target.job.end(Err(problem.message.clone()));
        }
        let done = self.target.as_ref().map(|target| target.done);
        let token = done.and_then(|done| self.decoder.token(done));
        let Some(token) = token else {
            return problem;
        };
        let message = format!(
            "{}; received data is kept: resume with --resume {token}",
            problem.message
        );
        tracing::warn!("receiving {}/{}: {message}", self.pool, self.volume);
        Problem { message, ..problem }
    }
}

fn bad(error: &StreamError) -> Problem {
    Problem::invalid(format!("the stream was rejected: {error}"))
}
