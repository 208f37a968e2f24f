//! Compressed traces that are cut off, or request too much.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use traces::{Position, TraceErrorKind, parse};

#[test]
fn a_zstd_frame_may_not_ask_for_any_memory() {
    // One raw block after a header which says nothing but how large the window is (RFC 8878, 3.1.1).
    let frame = |window_log: u8| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3];
        frame.extend([8 << 3 | 1, 0, 0]);
        frame.extend(b"1 8 0 0\n");
        frame
    };
    assert!(parse(&*frame(27), None, None).is_ok());
    let failed = parse(&*frame(28), None, None).expect_err("too large");
    assert!(matches!(failed.kind, TraceErrorKind::Read(..)), "{failed}");
}

#[test]
fn a_compressed_trace_that_is_cut_off_says_where() {
    let lines: String = (0..10_000).map(|n| format!("{n} 8 0 {n}\n")).collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(lines.as_bytes()).expect("written");
    let gzip = gzip.finish().expect("finished");
    let zstd = zstd::encode_all(lines.as_bytes(), 0).expect("encoded");
    for bytes in [gzip, zstd] {
        let failed = parse(&bytes[..bytes.len() - 20], None, None).expect_err("cut");
        let said = failed.to_string();
        let TraceErrorKind::Read(position, _) = failed.kind else {
            panic!("{said}");
        };
        assert!(
            matches!(position, Position::Line(_) | Position::Byte(0)),
            "{said}"
        );
        assert!(said.contains("cut off"), "{said}");
    }
}
