//! The header of an iSCSI PDU and the text of a login.
#![no_main]

use convect_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    bounded(1 << 20, || {
        frontend_iscsi::fuzz::header(data);
        frontend_iscsi::fuzz::login(data);
        frontend_iscsi::fuzz::networks(data);
    });
});
