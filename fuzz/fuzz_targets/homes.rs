//! The bitmaps of groups handed out in chunks.
#![no_main]

use convect_fuzz::{any_page, bounded, page};
use format::HomesPage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
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
});
