//! An inner node of a map tree.

use crate::input::{any_page, page};
use crate::memory::bounded;
use format::{FANOUT, NodePage, Page, PageHeader, PageKind};

pub(crate) fn run(data: &[u8]) {
    let header = PageHeader {
        kind: PageKind::Node,
        level: 1,
        owner: 1,
        key: 0,
        generation: 1,
    };
    any_page(data, header);
    let page = page(header, data);
    let copy = bounded(1 << 16, || {
        let mut copy = Page::new(header);
        for index in 0..FANOUT {
            NodePage::set(&mut copy, index, NodePage::get(&page, index));
        }
        copy
    });
    let content = 64 + 12 * FANOUT;
    assert_eq!(page.bytes()[..content], copy.bytes()[..content]);
}
