//! One journal record of any kind.

use crate::memory::bounded;
use format::Record;
use units::CHUNK_BLOCKS;

pub(crate) fn run(data: &[u8]) {
    if let Ok((record, length)) = bounded(16 << 10, || Record::decode(data)) {
        assert!(length <= data.len());
        let mut again = Vec::new();
        record.encode(&mut again);
        assert_eq!(again, data[..length], "{record:?}");
        match record {
            Record::Write {
                first, slot, crcs, ..
            } => {
                assert!(usize::from(first) + crcs.len() <= CHUNK_BLOCKS);
                let _ = slot.plus(crcs.len() as u64 - 1);
            }
            Record::Home { home, .. } => drop(home.plus(CHUNK_BLOCKS as u64 - 1)),
            _ => {}
        }
    }
}
