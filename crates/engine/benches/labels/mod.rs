//! What the labels of drives say, for benchmarks that open pools on their own.

use block::DriveQueueExt;
use format::Label;
use reactor::Handle;

/// The newest label of a drive that no pool has open.
pub async fn newest_label(handle: &Handle, spec: &str) -> Label {
    let drive = drives::open(spec).expect("it exists");
    let queue = drive.queue(handle).expect("a queue");
    let mut labels = Vec::new();
    for offset in format::label_offsets(drive.info().size) {
        let buf = handle.dma().get(format::LABEL_SIZE as usize);
        let bytes = queue.read(offset, buf).await.expect("a label is read");
        labels.extend(Label::decode(&bytes).ok());
    }
    let newest = labels.into_iter().max_by_key(|label| label.generation);
    newest.expect("a label")
}
