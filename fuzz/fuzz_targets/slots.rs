//! The bitmap of a group handed out in blocks.
#![no_main]

use convect_fuzz::{any_page, bounded, page};
use format::SlotsPage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let header = SlotsPage::header(u32::MAX - 1, 2, 3);
    any_page(data, header);
    let page = page(header, data);
    bounded(1 << 16, || {
        let bits = SlotsPage::decode(&page);
        assert_eq!(SlotsPage::decode(&SlotsPage::encode(header, &bits)), bits);
    });
});
