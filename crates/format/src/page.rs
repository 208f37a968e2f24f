//! The 4 KiB pages of the metadata trees: their common header and the pointers to them.

use crate::bytes::{get_place, get_u16, get_u32, get_u64, put, put_place};
use checksum::crc32c;
use units::Place;

/// Size of a page, in bytes.
pub const PAGE: usize = 4096;
/// First byte after the common header.
pub(crate) const BODY: usize = 64;
const MAGIC: u32 = 0x4750_5643; // "CVPG"
const VERSION: u16 = 1;

/// Kinds of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageKind {
    /// Inner node of a tree.
    Node,
    /// Map of one chunk.
    Chunk,
    /// A volume's entry in the directory.
    Volume,
    /// Bitmap of a group handed out in blocks.
    Slots,
    /// Bitmaps of groups handed out in chunks.
    Homes,
}

impl PageKind {
    const ALL: [Self; 5] = [
        Self::Node,
        Self::Chunk,
        Self::Volume,
        Self::Slots,
        Self::Homes,
    ];

    fn code(self) -> u8 {
        Self::ALL
            .iter()
            .position(|kind| *kind == self)
            .expect("listed") as u8
            + 1
    }
}

/// Says what a page is and where it belongs: a page that landed elsewhere is noticed by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageHeader {
    /// Its kind.
    pub kind: PageKind,
    /// 0 for a leaf, 1 for the nodes above the leaves, and so on.
    pub level: u8,
    /// Tree: the volume's id, or one of the shard's own trees.
    pub owner: u32,
    /// First key beneath it.
    pub key: u32,
    /// Checkpoint that wrote it.
    pub generation: u64,
}

/// Where a page lies and what it must be. No place means no page: all beneath it is empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PagePtr {
    /// Its place in the metadata region.
    pub place: Place,
    /// CRC32C of its 4,096 bytes.
    pub crc: u32,
    /// For a pointer to a chunk's page: bit 0, it has dirty blocks; bit 1, it has clean copies.
    pub hint: u16,
}

impl PagePtr {
    /// Encoded size in bytes.
    pub const SIZE: usize = 12;

    /// Reads a pointer at `at`.
    #[inline]
    pub fn decode(bytes: &[u8], at: usize) -> Self {
        Self {
            place: get_place(bytes, at),
            crc: get_u32(bytes, at + 6),
            hint: get_u16(bytes, at + 10),
        }
    }

    /// Writes the pointer at `at`.
    #[inline]
    pub fn encode(self, bytes: &mut [u8], at: usize) {
        put_place(bytes, at, self.place);
        put(bytes, at + 6, &self.crc.to_le_bytes());
        put(bytes, at + 10, &self.hint.to_le_bytes());
    }
}

/// The bytes of a page. All of its kinds are views of this.
#[derive(Clone, PartialEq, Eq)]
pub struct Page(Box<[u8; PAGE]>);

impl Page {
    /// An empty page with a header.
    pub fn new(header: PageHeader) -> Self {
        let zeroes = vec![0; PAGE].into_boxed_slice();
        let mut page = Self(zeroes.try_into().expect("a page's length"));
        page.set_header(header);
        page
    }

    /// Takes bytes read from a drive.
    ///
    /// `None` unless they carry the pointer's checksum and `wanted` (whose generation is not
    /// compared).
    pub fn open(bytes: &[u8], ptr: PagePtr, wanted: PageHeader) -> Option<Self> {
        if crc32c(bytes) != ptr.crc {
            return None;
        }
        Self::open_verified(bytes, wanted)
    }

    /// As [`Page::open`], of bytes whose checksum was compared with the pointer's already.
    pub fn open_verified(bytes: &[u8], wanted: PageHeader) -> Option<Self> {
        let page = Self::found(bytes)?;
        let header = page.header()?;
        (header
            == PageHeader {
                generation: header.generation,
                ..wanted
            })
        .then_some(page)
    }

    /// Takes bytes read from a drive that no pointer led to, for a search: only its header says
    /// its identity, without verifying that it is current. `None` without a header.
    pub fn found(bytes: &[u8]) -> Option<Self> {
        let page = Self(Box::<[u8]>::from(bytes).try_into().ok()?);
        page.header().is_some().then_some(page)
    }

    /// The header; `None` when it is none.
    pub fn header(&self) -> Option<PageHeader> {
        let bytes = &self.0[..];
        if get_u32(bytes, 0) != MAGIC || get_u16(bytes, 6) != VERSION {
            return None;
        }
        let kind = *PageKind::ALL.get(usize::from(bytes[4]).checked_sub(1)?)?;
        Some(PageHeader {
            kind,
            level: bytes[5],
            owner: get_u32(bytes, 8),
            key: get_u32(bytes, 12),
            generation: get_u64(bytes, 16),
        })
    }

    /// Replaces the header.
    pub fn set_header(&mut self, header: PageHeader) {
        let bytes = &mut self.0[..];
        put(bytes, 0, &MAGIC.to_le_bytes());
        bytes[4] = header.kind.code();
        bytes[5] = header.level;
        put(bytes, 6, &VERSION.to_le_bytes());
        put(bytes, 8, &header.owner.to_le_bytes());
        put(bytes, 12, &header.key.to_le_bytes());
        put(bytes, 16, &header.generation.to_le_bytes());
    }

    /// All of its bytes.
    pub fn bytes(&self) -> &[u8; PAGE] {
        &self.0
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; PAGE] {
        &mut self.0
    }

    /// CRC32C of its bytes.
    pub fn crc(&self) -> u32 {
        crc32c(&self.0[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_opened_only_where_it_belongs() {
        let header = PageHeader {
            kind: PageKind::Chunk,
            level: 0,
            owner: 7,
            key: 9,
            generation: 3,
        };
        let page = Page::new(header);
        let ptr = PagePtr {
            crc: page.crc(),
            ..PagePtr::default()
        };
        assert!(Page::open(page.bytes(), ptr, header).is_some());
        assert!(
            Page::open(
                page.bytes(),
                ptr,
                PageHeader {
                    generation: 99,
                    ..header
                }
            )
            .is_some()
        );
        for wrong in [
            PageHeader { owner: 8, ..header },
            PageHeader { key: 8, ..header },
            PageHeader { level: 1, ..header },
            PageHeader {
                kind: PageKind::Node,
                ..header
            },
        ] {
            assert!(Page::open(page.bytes(), ptr, wrong).is_none(), "{wrong:?}");
        }
        assert!(Page::open(page.bytes(), PagePtr { crc: 1, ..ptr }, header).is_none());
        assert!(Page::open(&page.bytes()[..512], ptr, header).is_none());
    }
}
