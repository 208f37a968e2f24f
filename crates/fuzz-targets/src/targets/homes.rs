//! The bitmaps of groups that are allocated in chunks.

use crate::input::{any_page, page};
use crate::memory::bounded;
use format::HomesPage;

pub(crate) fn run(data: &[u8]) {
    let header = HomesPage::header(u32::MAX - 2, 2, 3);
    any_page(data, header);
    let page = page(header, data);
    bounded(1 << 16, || {
        let groups = HomesPage::decode(&page);
        assert_eq!(
            HomesPage::decode(&HomesPage::encode(header, &groups)),
            groups
        );
    });
}
