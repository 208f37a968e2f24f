//! Arbitrary bytes made valid up to their checksum, so that mutated fields reach the decoder.

use crate::memory::bounded;
use format::{Page, PageHeader, PagePtr, crc32c};

/// Bytes of a page or a block.
pub const PAGE: usize = 4096;
/// Bytes of a page's header.
const PAGE_HEADER: usize = 64;

/// A whole block that begins with `data`, the rest zero.
#[must_use]
pub fn block(data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    let length = data.len().min(PAGE);
    bytes[..length].copy_from_slice(&data[..length]);
    bytes
}

/// Stores the checksum of all bytes from offset 8 on at offset 4, as checkpoints and journal pages
/// have it.
#[must_use]
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn pointer_to(bytes: &[u8]) -> PagePtr {
    PagePtr {
        crc: crc32c(bytes),
        ..PagePtr::default()
    }
}

/// A page with a valid header and `data` as its content, the rest zero.
///
/// # Panics
/// When the page does not open although its header and checksum are valid.
#[must_use]
pub fn page(header: PageHeader, data: &[u8]) -> Page {
    let mut bytes = Page::new(header).bytes().to_vec();
    let length = data.len().min(PAGE - PAGE_HEADER);
    bytes[PAGE_HEADER..PAGE_HEADER + length].copy_from_slice(&data[..length]);
    Page::open(&bytes, pointer_to(&bytes), header).expect("a valid page opens")
}

/// Opens `data` as a page with the correct checksum, whatever its header says.
///
/// # Panics
/// When the page that opens has another checksum, or takes more than two pages of memory.
pub fn any_page(data: &[u8], header: PageHeader) {
    let bytes = block(data);
    let ptr = pointer_to(&bytes);
    if let Some(page) = bounded(2 * PAGE, || Page::open(&bytes, ptr, header)) {
        assert_eq!(page.crc(), ptr.crc);
    }
}
