//! A format is found by content, then by name, or the error says what to specify.

use crate::samples::{oracle_general, samples, vscsi_v1, vscsi_v2};
use std::fs;
use std::path::PathBuf;
use traces::{Format, TraceError, TraceErrorKind, parse, read};

/// A folder of one test, which is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("convect-traces-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn read(&self, name: &str, bytes: &[u8]) -> Result<Format, TraceError> {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("written");
        read(&path, None, None).map(|trace| trace.format)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A remaining folder does no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn content_counts_more_than_a_name() {
    let folder = Folder::new("content");
    for sample in samples() {
        for name in ["trace", "trace.csv", "trace.vscsi", "trace.lis.gz"] {
            let format = folder.read(name, &sample.bytes).expect(sample.format);
            assert_eq!(format, sample.format());
        }
    }
}

#[test]
fn a_name_tells_where_content_does_not() {
    let folder = Folder::new("name");
    for (name, format) in [
        ("a.vscsi", "vscsi"),
        ("A.LIS", "lis"),
        ("sda.blktrace.0", "blktrace"),
        ("w01.oracleGeneral.bin.zst", "oracle-general"),
        ("x.iolog", "fio-iolog"),
        ("x.blkparse", "blkparse"),
    ] {
        let failed = folder.read(name, b"!").expect_err("garbage");
        let TraceErrorKind::Damaged {
            format: as_which, ..
        } = &failed.kind
        else {
            panic!("{failed}");
        };
        assert_eq!(as_which.name(), format);
    }
}

#[test]
fn what_may_be_several_says_which_to_give() {
    let folder = Folder::new("several");
    let failed = folder
        .read("x.csv", b"1,2,3\n")
        .expect_err("no CSV of ours");
    let said = failed.to_string();
    assert!(said.contains("x.csv: "), "{said}");
    assert!(said.contains("--format msr or --format csv"), "{said}");
}

#[test]
fn what_is_no_trace_says_which_formats_there_are() {
    for bytes in [&b"hello\n"[..], &[0; 100], &[0xff; 5000], &[b'x'; 9000]] {
        let failed = parse(bytes, None, None).expect_err("no trace");
        assert!(matches!(failed.kind, TraceErrorKind::Unrecognised));
        for format in Format::all() {
            assert!(failed.to_string().contains(format.name()));
        }
    }
}

#[test]
fn oracle_general_without_a_mark_has_to_be_plausible() {
    let good = oracle_general(5, 1, 512, 2);
    for bad in [
        oracle_general(4, 1, 512, 2),
        oracle_general(6, 1, 0, 2),
        oracle_general(6, 1, 512, 0),
        oracle_general(6, 1, 512, -2),
        good[..23].to_vec(),
    ] {
        let failed = parse(&*[&*good, &bad].concat(), None, None).expect_err("garbage");
        assert!(
            matches!(failed.kind, TraceErrorKind::Unrecognised),
            "{failed}"
        );
    }
}

#[test]
fn a_single_record_is_enough() {
    for (bytes, format) in [
        (vscsi_v1(0x28, 512, 1, 1), "vscsi"),
        (vscsi_v2(0x28, 512, 1, 1), "vscsi"),
        (oracle_general(1, 1, 512, -1), "oracle-general"),
        (b"1 2 3 4".to_vec(), "lis"),
    ] {
        let trace = parse(&*bytes, None, None).expect(format);
        assert_eq!(trace.format.name(), format);
        assert_eq!(trace.requests.len(), 1);
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    let failed = "vhd".parse::<Format>().expect_err("no format");
    assert!(failed.to_string().contains("fio-iolog"), "{failed}");
}

#[test]
fn a_file_that_is_missing_is_named() {
    let failed = read("/no/such/trace".as_ref(), None, None).expect_err("missing");
    assert!(
        failed
            .to_string()
            .starts_with("/no/such/trace: it cannot be opened")
    );
}
