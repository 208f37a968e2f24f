//! Access to the private parsers for the fuzz targets (`crates/fuzz-targets`).
//!
//! Compiled in every build, since a feature would build all dependents twice; the linker drops it
//! from programs that do not call it.

use crate::options::{ContextRequest, InfoRequest};
use crate::protocol::{HEADER_LEN, Header};

/// Parses data as that of each kind of option.
pub fn option(data: &[u8]) {
    let _ = InfoRequest::parse(data);
    if let Some(request) = ContextRequest::parse(data) {
        for name in ["base:allocation", "convect:changed:a"] {
            assert!(request.lists(name) || !request.selects(name));
            assert!(
                request.is_about("convect:")
                    || !name.starts_with("convect:")
                    || !request.lists(name)
            );
        }
    }
}

/// Parses a request's header.
pub fn request(data: &[u8]) {
    if let Some(bytes) = data.first_chunk::<HEADER_LEN>() {
        let _ = Header::parse(bytes);
    }
}
