//! A volume's entry in a directory.

use crate::input::{any_page, page};
use crate::memory::bounded;
use format::VolumePage;

pub(crate) fn run(data: &[u8]) {
    let header = VolumePage::header(u32::MAX, 2, 3);
    any_page(data, header);
    let page = page(header, data);
    bounded(1 << 16, || {
        let (root, counts) = VolumePage::decode(&page);
        assert!(!counts.is_possible() || counts.mapped() <= 1 << 40);
        let again = VolumePage::encode(header, root, counts);
        assert_eq!(VolumePage::decode(&again), (root, counts));
    });
}
