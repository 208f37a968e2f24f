//! One drive, as the tools reach it, and its four labels.

use crate::Result;
use crate::error::InspectError;
use block::{DmaBuf, DmaPool, Drive, DriveError, DriveQueue, DriveQueueExt};
use drives::OpenDrive;
use format::{LABEL_SIZE, Label, LabelError, label_places};
use reactor::Handle;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes read first of a label; the rest only when there is one and it is longer.
const HEAD: usize = 64 << 10;

/// The content of a label location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LabelState {
    /// A label.
    Valid(Box<Label>),
    /// Zeroes: none was written yet, or the drive left its pool.
    Empty,
    /// Neither a label nor zeroes, or one of another place.
    Damaged,
    /// The drive is shorter than it was, and does not have the place.
    Gone,
    /// The drive cannot read it.
    Unreadable(DriveError),
    /// A label of a format that this version cannot follow, with the reason.
    Unknown(String),
}

impl LabelState {
    /// The label, if there is one.
    pub fn label(&self) -> Option<&Label> {
        match self {
            Self::Valid(label) => Some(label),
            _ => None,
        }
    }
}

/// Whether a label was written for this place: what is at the end of a drive of another size than it had is data.
fn belongs(label: &Label, index: usize, offset: u64) -> bool {
    let size = label.own_size();
    size.is_none_or(|size| format::label_offsets(size)[index] == offset)
}

/// A drive that is open.
pub struct Disk {
    /// How it was opened.
    pub spec: String,
    /// Size in bytes.
    pub size: u64,
    /// Its labels, in the order of [`label_places`].
    pub labels: [LabelState; 4],
    /// Where those lie; none beyond the end of a drive that was truncated.
    pub places: [Option<u64>; 4],
    queue: Rc<dyn DriveQueue>,
    dma: DmaPool,
}

impl Disk {
    /// Reads the labels of an open drive.
    ///
    /// # Errors
    /// When the loop cannot reach it, or it is too small for a pool.
    pub async fn new(handle: &Handle, drive: &Arc<dyn OpenDrive>) -> Result<Self> {
        let info = Drive::info(&**drive);
        let queue = drive.queue(handle).map_err(|failed| {
            InspectError::new(format!("{} cannot be attached: {failed}", info.spec))
        })?;
        if info.size < 6 * LABEL_SIZE {
            return Err(InspectError::new(format!(
                "{} has {}, which is too small for a drive of a pool: specify another",
                info.spec,
                units::format_bytes(info.size)
            )));
        }
        let mut disk = Self {
            spec: info.spec,
            size: info.size,
            labels: [const { LabelState::Empty }; 4],
            places: label_places(info.size, info.size),
            queue,
            dma: handle.dma().clone(),
        };
        for index in [0, 1] {
            disk.labels[index] = disk.label(index).await;
        }
        // The other end is where it was when the drive joined.
        if let Some(known) = disk.newest().and_then(Label::own_size) {
            disk.places = label_places(known, disk.size);
        }
        for index in [2, 3] {
            disk.labels[index] = disk.label(index).await;
        }
        Ok(disk)
    }

    async fn label(&self, index: usize) -> LabelState {
        let Some(offset) = self.places[index] else {
            return LabelState::Gone;
        };
        let head = match self.read(offset, HEAD).await {
            Ok(head) => head,
            Err(error) => return LabelState::Unreadable(error),
        };
        if head.iter().all(|byte| *byte == 0) {
            return LabelState::Empty;
        }
        let decoded = match Label::decode_to_read(&head) {
            Err(LabelError::None) if head.starts_with(b"CONVECT") => {
                match self.read(offset, LABEL_SIZE as usize).await {
                    Ok(whole) => Label::decode_to_read(&whole),
                    Err(error) => return LabelState::Unreadable(error),
                }
            }
            decoded => decoded,
        };
        match decoded {
            Ok(label) if !belongs(&label, index, offset) => LabelState::Damaged,
            Ok(label) => LabelState::Valid(Box::new(label)),
            Err(LabelError::None) => LabelState::Damaged,
            Err(error) => LabelState::Unknown(error.to_string()),
        }
    }

    /// The newest of its labels.
    pub fn newest(&self) -> Option<&Label> {
        let labels = self.labels.iter().filter_map(LabelState::label);
        labels.max_by_key(|label| label.generation)
    }

    /// Reads `len` bytes at `offset` (bytes, whole sectors).
    ///
    /// # Errors
    /// The drive's error.
    pub async fn read(&self, offset: u64, len: usize) -> std::result::Result<DmaBuf, DriveError> {
        self.queue.read(offset, self.dma.get(len)).await
    }

    /// Writes whole sectors at `offset` (bytes).
    ///
    /// # Errors
    /// The drive's error; a drive opened read-only refuses.
    pub async fn write(&self, offset: u64, bytes: &[u8]) -> std::result::Result<(), DriveError> {
        let mut buf = self.dma.get(bytes.len());
        buf.copy_from_slice(bytes);
        self.queue.write(offset, buf).await
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// The drive's error.
    pub async fn flush(&self) -> std::result::Result<(), DriveError> {
        self.queue.flush().await
    }
}
