//! A volume's entry in a directory.
#![no_main]

use convect_fuzz::{any_page, bounded, page};
use format::VolumePage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let header = VolumePage::header(u32::MAX, 2, 3);
    any_page(data, header);
    let page = page(header, data);
    bounded(1 << 16, || {
        let (root, counts) = VolumePage::decode(&page);
        assert!(!counts.is_possible() || counts.mapped() <= 1 << 40);
        let again = VolumePage::encode(header, root, counts);
        assert_eq!(VolumePage::decode(&again), (root, counts));
    });
});
