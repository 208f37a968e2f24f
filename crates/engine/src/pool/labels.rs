//! Reading and writing labels, on a loop's thread.

use super::{Pool, PoolDrive, Result, error};
use crate::control::types::{EngineError, ErrorCode};
use crate::vdrive::{DriveShared, patience};
use block::{Drive, DriveError, DriveQueue, DriveQueueExt};
use drives::OpenDrive;
use format::{LABEL_SIZE, Label, LabelError, PoolConfig, label_places, label_slots_for};
use futures_util::future::{Either, join, join_all, select};
use reactor::{Handle, Remote, control};
use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::DriveId;
use units::mutation::{Mutation, is_on};

/// Blocks read first of a label; the rest only when there is one.
const HEAD: usize = 64 << 10;
/// The error number of an input/output error.
const EIO: i32 = 5;

/// Runs `make`'s future on a loop and waits for its end.
pub(crate) fn on_loop<T, F, M>(remote: &Remote, make: M) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
    M: FnOnce(Handle) -> F + Send + 'static,
{
    let (give, take) = futures_channel::oneshot::channel();
    remote.spawn(move |handle| {
        let future = make(handle);
        async move {
            // The receiver is only gone if the caller's thread has ended.
            let _ = give.send(future.await);
        }
    });
    control::receive(take).map_err(|_| EngineError::new(ErrorCode::Io, "the engine is stopping"))
}

/// The same with a time limit, for a drive that may not respond. Memory of a request that it
/// still has is not reused.
async fn within<T>(
    handle: Handle,
    limit_ns: u64,
    requests: impl Future<Output = std::result::Result<T, DriveError>>,
) -> std::result::Result<T, DriveError> {
    match select(pin!(requests), pin!(patience(&handle, limit_ns))).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(DriveError::Timeout),
    }
}

fn queue(
    drive: &Arc<dyn OpenDrive>,
    handle: &Handle,
) -> std::result::Result<Rc<dyn DriveQueue>, DriveError> {
    drive
        .queue(handle)
        .map_err(|failed| DriveError::Os(failed.raw_os_error().unwrap_or(EIO)))
}

/// Content of one of a drive's four label locations.
async fn read_place(
    queue: &Rc<dyn DriveQueue>,
    handle: &Handle,
    offset: u64,
) -> std::result::Result<std::result::Result<Label, LabelError>, DriveError> {
    let head = queue.read(offset, handle.dma().get(HEAD)).await?;
    match Label::decode(&head) {
        Err(LabelError::None) if head.starts_with(b"CONVECT") => {
            let whole = handle.dma().get(LABEL_SIZE as usize);
            Ok(Label::decode(&queue.read(offset, whole).await?))
        }
        other => Ok(other),
    }
}

/// Whether other locations of the drive may still be readable.
fn is_of_the_place(failed: DriveError) -> bool {
    let of_the_drive = matches!(
        failed,
        DriveError::Gone | DriveError::Timeout | DriveError::Bounds
    );
    !of_the_drive && !is_on(Mutation::LabelPlace)
}

/// Findings in a drive's label locations so far.
#[derive(Default)]
struct Look {
    newest: Option<Label>,
    /// The newest label of an unsupported format, by generation.
    refused: Option<(u64, LabelError)>,
    unreadable: [Option<DriveError>; 4],
}

impl Look {
    async fn at(
        &mut self,
        queue: &Rc<dyn DriveQueue>,
        handle: &Handle,
        place: usize,
        offset: Option<u64>,
    ) -> std::result::Result<(), DriveError> {
        let Some(offset) = offset else {
            self.unreadable[place] = Some(DriveError::Bounds);
            return Ok(());
        };
        match read_place(queue, handle, offset).await {
            Ok(Ok(label)) => {
                // One that was not written for this place is data, or of the time before a drive was enlarged.
                let size = label.own_size();
                let belongs = size.is_none_or(|size| format::label_offsets(size)[place] == offset);
                let generation = label.generation;
                let newer = |known: &Label| known.generation < generation;
                if belongs && self.newest.as_ref().is_none_or(newer) {
                    self.newest = Some(label);
                }
            }
            Ok(Err(LabelError::Newer { generation, why })) => {
                if self
                    .refused
                    .as_ref()
                    .is_none_or(|known| known.0 < generation)
                {
                    self.refused = Some((generation, LabelError::Newer { generation, why }));
                }
            }
            Ok(Err(_)) => {}
            Err(failed) if is_of_the_place(failed) => self.unreadable[place] = Some(failed),
            Err(failed) => return Err(failed),
        }
        Ok(())
    }
}

/// The newest label of a drive that can be read, if it has one.
///
/// # Errors
/// If the drive cannot be read at all, or its labels are of a newer format.
pub(crate) fn read(remote: &Remote, drive: &Arc<dyn OpenDrive>) -> Result<Option<Label>> {
    let info = Drive::info(&**drive);
    let spec = info.spec.clone();
    let drive = drive.clone();
    let found = on_loop(remote, move |handle| async move {
        let queue = queue(&drive, &handle)?;
        let mut look = Look::default();
        if info.size < 6 * LABEL_SIZE {
            return Ok(Ok(None));
        }
        let front = label_places(info.size, info.size);
        for place in [0, 1] {
            look.at(&queue, &handle, place, front[place]).await?;
        }
        // The other end is where it was when the drive joined. What is at the present end of a drive that has another
        // size now is data; only where the first labels are gone the end itself has to tell.
        let known = look.newest.as_ref().and_then(Label::own_size);
        let end = label_places(known.unwrap_or(info.size), info.size);
        for place in [2, 3] {
            look.at(&queue, &handle, place, end[place]).await?;
        }
        let Look {
            newest,
            refused,
            unreadable,
        } = look;
        // The newest label is valid, and if its format is unsupported, no older one is.
        let known = newest.as_ref().map(|label| label.generation);
        // A label is in two places. When both are lost it may have been the newest.
        for [one, other] in [0, 1].map(label_slots_for) {
            if let (Some(failed), Some(_)) = (unreadable[one], unreadable[other]) {
                return Err(failed);
            }
        }
        Ok(match refused {
            Some((generation, failed)) if known.is_none_or(|known| known < generation) => {
                Err(failed)
            }
            _ => Ok(newest),
        })
    })?;
    let found = found.map_err(|failed: DriveError| {
        EngineError::new(
            ErrorCode::Io,
            format!("{spec}: its label cannot be read: {failed}"),
        )
    })?;
    found.map_err(|failed| EngineError::new(ErrorCode::Damaged, format!("{spec}: {failed}")))
}

/// Content of a label location.
pub(super) enum InPlace {
    /// A label of this generation.
    Whole(u64),
    /// A damaged or unreadable label.
    Damaged,
    /// None was written here.
    Nothing,
    /// The drive is shorter than it was, and does not have the place.
    Gone,
}

/// The content of the four label locations of a drive that had `size` bytes when it joined.
///
/// # Errors
/// When the drive does not respond, or the engine is stopping.
pub(super) fn read_all(
    remote: &Remote,
    drive: &Arc<dyn OpenDrive>,
    size: u64,
    shared: &DriveShared,
) -> Result<Vec<InPlace>> {
    let info = Drive::info(&**drive);
    let (drive, limit_ns) = (drive.clone(), shared.limits.deadline_ns);
    let found = on_loop(remote, move |handle| {
        let clock = handle.clone();
        let requests = async move {
            let queue = queue(&drive, &handle)?;
            let mut labels = Vec::new();
            for offset in label_places(size, info.size) {
                let Some(offset) = offset else {
                    labels.push(InPlace::Gone);
                    continue;
                };
                let buf = handle.dma().get(LABEL_SIZE as usize);
                let whole = queue.read(offset, buf).await;
                labels.push(match whole {
                    Ok(whole) => match Label::decode(&whole) {
                        Ok(label) => InPlace::Whole(label.generation),
                        Err(_) if whole.starts_with(b"CONVECT") => InPlace::Damaged,
                        Err(_) => InPlace::Nothing,
                    },
                    Err(_) => InPlace::Damaged,
                });
            }
            Ok(labels)
        };
        within(clock, limit_ns, requests)
    })?;
    found.map_err(|failed| {
        EngineError::new(
            ErrorCode::Io,
            format!("{}: its labels cannot be read: {failed}", info.spec),
        )
    })
}

/// Flushes the drives, each within a time limit in nanoseconds, and returns those that succeeded: an engine that was killed
/// may have left labels in their caches, and statements of the next labels about those must hold after a power cut.
///
/// # Errors
/// When the engine is stopping.
pub(super) fn flush_all(
    remote: &Remote,
    drives: Vec<(DriveId, Arc<dyn OpenDrive>)>,
    limit_ns: u64,
) -> Result<BTreeSet<DriveId>> {
    on_loop(remote, move |handle| async move {
        let flush = |(id, drive): (DriveId, Arc<dyn OpenDrive>)| {
            let handle = handle.clone();
            async move {
                let queue = queue(&drive, &handle);
                let flushed = async move { queue?.flush().await };
                match within(handle, limit_ns, flushed).await {
                    Ok(()) => Some(id),
                    Err(failed) => {
                        let spec = Drive::info(&*drive).spec;
                        tracing::warn!(spec, error = %failed, "a drive's cache cannot be flushed: its label may not be durable");
                        None
                    }
                }
            }
        };
        let flushed = join_all(drives.into_iter().map(flush)).await;
        flushed.into_iter().flatten().collect()
    })
}

/// Why a label was not written.
pub(super) struct LabelFailure {
    pub error: EngineError,
    /// The flush failed: it is unknown what the drive lost.
    pub flush: bool,
}

/// Writes a label, as bytes, to the two places that its generation goes to on a drive that had `size` bytes when it joined,
/// and makes them durable. One of the two is enough; a place that the drive does not have any more is left out.
pub(super) async fn write_one(
    handle: &Handle,
    (drive, size): (&Arc<dyn OpenDrive>, u64),
    generation: u64,
    bytes: &[u8],
    shared: &DriveShared,
) -> std::result::Result<(), LabelFailure> {
    let flushing = std::cell::Cell::new(false);
    let info = Drive::info(&**drive);
    let requests = async {
        let queue = queue(drive, handle)?;
        let size = match is_on(Mutation::LabelAtEnd) {
            true => info.size,
            false => size,
        };
        let offsets = label_places(size, info.size);
        let queue = &queue;
        let writes = label_slots_for(generation).map(|slot| async move {
            let offset = offsets[slot].ok_or(DriveError::Bounds)?;
            let mut buf = handle.dma().get(bytes.len());
            buf.copy_from_slice(bytes);
            queue.write(offset, buf).await
        });
        let [one, other] = writes;
        let (one, other) = join(one, other).await;
        shared.wear.note_label(2 * bytes.len() as u64);
        one.or(other)?;
        flushing.set(true);
        if is_on(Mutation::LabelFlush) {
            return Ok(());
        }
        // The drive may lose the shards' writes as well.
        match is_on(Mutation::LabelFlushAlone) {
            true => queue.flush().await,
            false => shared.flush(handle, queue.flush()).await,
        }
    };
    let written = within(handle.clone(), shared.limits.deadline_ns, requests).await;
    if written == Err(DriveError::Timeout) {
        shared.timeouts.fetch_add(1, Ordering::Relaxed);
        shared.silent.store(true, Ordering::Relaxed);
    }
    written.map_err(|failed: DriveError| LabelFailure {
        error: EngineError::new(
            ErrorCode::Io,
            format!("{}: its label cannot be written: {failed}", info.spec),
        ),
        flush: flushing.get(),
    })
}

/// Clears all four labels of a drive that had `size` bytes when it joined.
fn clear(remote: &Remote, drive: &Arc<dyn OpenDrive>, size: u64) -> Result<()> {
    let info = Drive::info(&**drive);
    let drive = drive.clone();
    let cleared = on_loop(remote, move |handle| async move {
        let queue = queue(&drive, &handle)?;
        for offset in label_places(size, info.size).into_iter().flatten() {
            queue.write(offset, handle.dma().zeroed(HEAD)).await?;
        }
        queue.flush().await
    })?;
    cleared.map_err(|failed: DriveError| {
        EngineError::new(
            ErrorCode::Io,
            format!("{}: its labels cannot be cleared: {failed}", info.spec),
        )
    })
}

impl Pool {
    /// Clears the labels of drives that the pool has no longer, or that go with it. A label that is being written would
    /// reappear afterwards: what writes it ends first.
    pub(super) fn clear_labels(&self, drives: &[PoolDrive]) {
        let keeper = self.keeper.clone();
        let _ = on_loop(&self.remote, move |_| async move { keeper.settled().await });
        for pool_drive in drives {
            if let Some(drive) = &pool_drive.drive
                && let Err(failed) = clear(&self.remote, drive, pool_drive.size)
            {
                tracing::warn!(error = %failed, "the label of a drive that left pool {} could not be removed", self.name);
            }
        }
    }

    /// Writes the pool's description to every valid drive. It is valid once any drive has
    /// it, since the newest label wins; a drive that fails is out where others can stand in.
    ///
    /// # Errors
    /// When no drive took it: nothing has changed then.
    pub(crate) fn save(&self, config: PoolConfig, exported: bool) -> Result<()> {
        let keeper = self.keeper.clone();
        on_loop(&self.remote, move |handle| async move {
            keeper.save(&handle, config, exported).await
        })?
    }

    /// Changes the pool's description and writes it; nothing changes when that fails.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut PoolConfig) -> Result<T>) -> Result<T> {
        let (config, value) = self.changed(change)?;
        self.save(config, false)?;
        Ok(value)
    }

    /// As [`Pool::update`], for frequent changes that do not affect the pool's drives: drives
    /// without metadata are updated a little later.
    pub(crate) fn update_soon<T>(
        &self,
        change: impl FnOnce(&mut PoolConfig) -> Result<T>,
    ) -> Result<T> {
        let (config, value) = self.changed(change)?;
        let keeper = self.keeper.clone();
        on_loop(&self.remote, move |handle| async move {
            keeper.save_soon(&handle, config).await
        })??;
        Ok(value)
    }

    /// The same, on the loop of the labels.
    pub(super) async fn update_on_loop<T>(
        &self,
        handle: &Handle,
        change: impl FnOnce(&mut PoolConfig) -> Result<T>,
    ) -> Result<T> {
        let (config, value) = self.changed(change)?;
        self.keeper.save_soon(handle, config).await?;
        Ok(value)
    }

    fn changed<T>(
        &self,
        change: impl FnOnce(&mut PoolConfig) -> Result<T>,
    ) -> Result<(PoolConfig, T)> {
        let mut config = self.config();
        let value = change(&mut config)?;
        config.note_layers();
        Ok((config, value))
    }
}

/// Refuses a drive that belongs to a pool, unless `force`.
pub(crate) fn refuse_labelled(
    remote: &Remote,
    drive: &Arc<dyn OpenDrive>,
    force: bool,
) -> Result<()> {
    let spec = Drive::info(&**drive).spec;
    match read(remote, drive) {
        Ok(Some(label)) if !force => error(
            ErrorCode::Refused,
            format!(
                "{spec} contains convect pool '{}': import it, or use --force to destroy it",
                label.config.name
            ),
        ),
        Ok(_) => Ok(()),
        Err(failed) if !force => Err(failed),
        Err(_) => Ok(()),
    }
}
