//! The bitmap of a group that is allocated in blocks.

use crate::input::{any_page, page};
use crate::memory::bounded;
use format::SlotsPage;

pub(crate) fn run(data: &[u8]) {
    let header = SlotsPage::header(u32::MAX - 1, 2, 3);
    any_page(data, header);
    let page = page(header, data);
    bounded(1 << 16, || {
        let bits = SlotsPage::decode(&page);
        assert_eq!(SlotsPage::decode(&SlotsPage::encode(header, &bits)), bits);
    });
}
