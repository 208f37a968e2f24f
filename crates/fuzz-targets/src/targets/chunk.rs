//! The map page of one chunk.

use crate::input::{any_page, page};
use crate::memory::bounded;
use format::{BlockState, ChunkPage};
use units::CHUNK_BLOCKS;

pub(crate) fn run(data: &[u8]) {
    let header = ChunkPage::header(1, 2, 3);
    any_page(data, header);
    let chunk = ChunkPage::from_page(page(header, data));
    let copy = bounded(1 << 16, || {
        let mut copy = ChunkPage::new(1, 2);
        copy.set_home(chunk.home());
        for block in 0..CHUNK_BLOCKS {
            copy.set_slot(block, chunk.slot(block));
            copy.set_crc(block, chunk.crc(block));
            copy.set_home_valid(block, chunk.home_valid(block));
        }
        copy
    });
    for block in 0..CHUNK_BLOCKS {
        assert_eq!(copy.state(block), chunk.state(block));
        let at_home = matches!(chunk.state(block), BlockState::Home | BlockState::Clean);
        assert_eq!(chunk.home_mask().has(block), at_home);
    }
}
