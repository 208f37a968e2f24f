//! The header of an iSCSI PDU, the text of a login, and address ranges of an access list.

use crate::memory::bounded;

pub(crate) fn run(data: &[u8]) {
    bounded(1 << 20, || {
        frontend_iscsi::fuzz::header(data);
        frontend_iscsi::fuzz::login(data);
        frontend_iscsi::fuzz::networks(data);
    });
}
