//! Access to the private parsers for the fuzz targets (`crates/fuzz-targets`).
//!
//! Compiled in every build, since a feature would build all dependents twice; the linker drops it
//! from programs that do not call it.

use crate::access::Network;
use crate::chap::Asked;
use crate::negotiate::{Agreed, CONNECTIONS_MAX, Purpose};
use crate::pdu::{HEAD_LEN, Head};
use crate::text;

/// Parses a header in every way.
pub fn header(data: &[u8]) {
    if let Some(bytes) = data.first_chunk::<HEAD_LEN>() {
        let head = Head(*bytes);
        assert!(head.data_len() < 1 << 24 && head.additional_len() <= 1020);
        let _ = (
            head.lun(),
            head.isid(),
            head.session_handle(),
            head.connection(),
        );
        let _ = scsi::memory_of(&head.cdb(), 512);
    }
}

/// Parses address ranges.
pub fn networks(data: &[u8]) {
    let text = std::str::from_utf8(data).unwrap_or_default();
    if let Some(network) = Network::parse(text) {
        let again = Network::parse(&network.to_string());
        assert_eq!(again, Some(network), "as it was written");
    }
}

/// Parses a login text and negotiates its keys.
pub fn login(data: &[u8]) {
    let Ok(pairs) = text::parse(data) else {
        return;
    };
    assert_eq!(
        text::parse(&text::encode(&pairs)),
        Ok(pairs.clone()),
        "as it was written"
    );
    for purpose in [
        Purpose::Session(CONNECTIONS_MAX),
        Purpose::Connection,
        Purpose::Discovery,
    ] {
        let mut agreed = Agreed::default();
        if agreed.negotiate(&pairs, purpose).is_ok() {
            assert!((1..=CONNECTIONS_MAX).contains(&agreed.connections_max));
            assert!((512..1 << 24).contains(&agreed.segment_max));
            assert!((512..=1 << 20).contains(&agreed.burst_max));
            assert!((512..=64 << 10).contains(&agreed.first_burst_max));
        }
    }
    if let Ok(Some((asked, _))) = Asked::new("5") {
        let _ = asked.read(&pairs);
    }
}
