//! Every page of a tree, from the top down, a batch at a time.

use crate::fetch::{Copies, Want};
use crate::inspection::Inspection;
use format::{Bounds, FANOUT, NodePage, Page, PageHeader, PageKind, PagePtr, TREE_TOP};

/// Pages read together.
const BATCH: usize = 256;

/// One page of a tree.
pub enum Found {
    /// It is right on some drive.
    Page {
        /// The pointer to it.
        ptr: PagePtr,
        /// The page.
        page: Page,
        /// Its header.
        header: PageHeader,
    },
    /// No drive has it right: nothing beneath it can be reached.
    Lost {
        /// The pointer to it.
        ptr: PagePtr,
        /// 0 for a leaf.
        level: u8,
        /// First key beneath it.
        key: u32,
    },
}

/// The keys beneath a page of `level` whose first is `key`.
pub fn keys_beneath(level: u8, key: u32) -> std::ops::RangeInclusive<u32> {
    let count = 1u64 << (8 * u32::from(level.min(TREE_TOP)));
    key..=(u64::from(key) + count - 1).min(u64::from(u32::MAX)) as u32
}

/// A walk through the tree of `owner`. What waits is bounded by the fanout, not by the tree.
pub struct Walk {
    owner: u32,
    leaf: PageKind,
    waiting: Vec<(u8, u32, PagePtr)>,
}

impl Walk {
    /// From the top node at `root` to leaves of kind `leaf`.
    pub fn new(owner: u32, leaf: PageKind, root: PagePtr) -> Self {
        let mut waiting = Vec::new();
        if root.place.is_some() {
            waiting.push((TREE_TOP, 0, root));
        }
        Self {
            owner,
            leaf,
            waiting,
        }
    }

    /// The next pages, about in the order of their keys. Copies that are wrong are repaired.
    pub async fn next(&mut self, inspection: &Inspection<'_>) -> Option<Vec<Found>> {
        if self.waiting.is_empty() {
            return None;
        }
        let start = self.waiting.len().saturating_sub(BATCH);
        let mut batch = self.waiting.split_off(start);
        batch.reverse();
        let in_meta = |ptr: &PagePtr| inspection.pool.check_page(*ptr).is_ok();
        let wants: Vec<Want> = batch
            .iter()
            .map(|(_, _, ptr)| Want {
                place: ptr.place,
                crc: ptr.crc,
            })
            .collect();
        let got = inspection.pool.fetch(&wants, Copies::Every).await;
        let mut found = Vec::new();
        let mut beneath = Vec::new();
        for ((level, key, ptr), got) in batch.into_iter().zip(got) {
            let wanted = self.header(level, key);
            let page = got.bytes.as_ref().filter(|_| in_meta(&ptr));
            let page = page.and_then(|bytes| Page::open(bytes, ptr, wanted));
            let Some(page) = page else {
                found.push(Found::Lost { ptr, level, key });
                continue;
            };
            inspection.mend("map page", ptr.place, &got).await;
            if level > 0 {
                for index in 0..FANOUT {
                    let child = NodePage::get(&page, index);
                    if child.place.is_some() {
                        let first = key | (index as u32) << (8 * (level - 1));
                        beneath.push((level - 1, first, child));
                    }
                }
            }
            let header = page.header().unwrap_or(wanted);
            found.push(Found::Page { ptr, page, header });
        }
        self.waiting.extend(beneath.into_iter().rev());
        Some(found)
    }

    fn header(&self, level: u8, key: u32) -> PageHeader {
        if level > 0 {
            return NodePage::header(self.owner, level, key, 0);
        }
        PageHeader {
            kind: self.leaf,
            level: 0,
            owner: self.owner,
            key,
            generation: 0,
        }
    }
}
