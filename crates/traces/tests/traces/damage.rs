//! Damaged input is refused with its position.

use crate::samples::{QUEUE, READ, WRITE, blktrace, oracle_general, vscsi_v1, vscsi_v2};
use traces::{Position, TraceErrorKind, parse};

const GIB: u32 = 1 << 30;
const SECTORS: u64 = 1 << 55;

/// The place and the words of the error that bytes give in a format.
#[track_caller]
fn damage(format: &str, bytes: &[u8]) -> (Position, String) {
    let name = format.parse().expect("a format");
    let failed = parse(bytes, Some(name), None).expect_err(format);
    let said = failed.to_string();
    match failed.kind {
        TraceErrorKind::Damaged { position, why, .. } => {
            assert!(said.contains(&format!("{position}: {why}, read as {format}: ")));
            (position, why)
        }
        kind => panic!("{format}: {kind}"),
    }
}

#[track_caller]
fn check(format: &str, bytes: impl AsRef<[u8]>, position: Position, words: &str) {
    let (found, why) = damage(format, bytes.as_ref());
    assert_eq!(found, position, "{why}");
    assert!(why.contains(words), "{why}");
}

/// A text in which the line of a number is another one.
#[track_caller]
fn check_line(format: &str, lines: &[&str], words: &str) {
    let line = lines.len() as u64;
    check(format, lines.join("\n"), Position::Line(line), words);
}

#[test]
fn damaged_binary_records() {
    let cases = [
        (
            "vscsi",
            vscsi_v1(0x28, 512, 1, 0),
            vscsi_v1(0x128, 512, 1, 0),
            "mark of version 1",
        ),
        (
            "vscsi",
            vscsi_v1(0x28, 512, 1, 0),
            vscsi_v2(0x28, 512, 1, 0),
            "mark of version 1",
        ),
        (
            "vscsi",
            vscsi_v2(0x28, 512, 1, 0),
            vec![0; 40],
            "mark of version 2",
        ),
        (
            "vscsi",
            vscsi_v1(0x28, 512, 1, 0),
            vscsi_v1(0x28, GIB + 1, 1, 0),
            "1 GiB",
        ),
        (
            "vscsi",
            vscsi_v1(0x28, 512, 1, 0),
            vscsi_v1(0x28, 1, SECTORS, 0),
            "2^55",
        ),
        (
            "vscsi",
            vscsi_v1(0x28, 512, 1, 0),
            vscsi_v1(0x28, 1024, SECTORS - 1, 0),
            "2^55",
        ),
        (
            "oracle-general",
            oracle_general(0, 1, 512, 9),
            oracle_general(0, SECTORS, 512, 9),
            "hash",
        ),
        (
            "oracle-general",
            oracle_general(0, 1, 512, 9),
            vec![0xff; 24],
            "hash",
        ),
        (
            "oracle-general",
            oracle_general(0, 1, 512, 9),
            oracle_general(0, 1, u32::MAX, 9),
            "1 GiB",
        ),
        (
            "blktrace",
            blktrace(true, 0, 1, 512, QUEUE | READ),
            vec![7; 48],
            "no record begins",
        ),
        (
            "blktrace",
            blktrace(false, 0, 1, 512, QUEUE | READ),
            b"\x08tae".repeat(12),
            "version 8",
        ),
        (
            "blktrace",
            blktrace(false, 0, 1, 512, QUEUE | READ),
            blktrace(false, 0, u64::MAX, 512, QUEUE | WRITE),
            "2^55",
        ),
    ];
    for (format, good, bad, words) in cases {
        let at = Position::Byte(good.len() as u64);
        check(format, [good, bad].concat(), at, words);
    }
    let words = "no record of version 1 or 2";
    check("vscsi", [0; 80], Position::Byte(0), words);
}

#[test]
fn binary_records_that_are_cut_off() {
    let records = [
        ("vscsi", vscsi_v1(0x28, 512, 1, 0)),
        ("vscsi", vscsi_v2(0x28, 512, 1, 0)),
        ("oracle-general", oracle_general(0, 1, 512, 9)),
        ("blktrace", blktrace(false, 0, 1, 512, QUEUE | READ)),
        // Eight bytes that belong to a record follow it.
        (
            "blktrace",
            blktrace(false, 0, 1, 512, QUEUE | READ | 1 << 8),
        ),
    ];
    for (format, record) in records {
        let whole = record.repeat(3);
        for cut in 1..record.len() {
            let bytes = &whole[..whole.len() - cut];
            let at = Position::Byte(2 * record.len() as u64);
            check(format, bytes, at, "ends within a record");
        }
    }
}

#[test]
fn damaged_lines() {
    let huge = SECTORS.to_string();
    let check = check_line;
    check("lis", &["1 2 3 4", "", "1 2 3"], "3 numbers, not 4");
    check(
        "lis",
        &["1 2 3 4", "1 x 3 4"],
        r#"sectors is "x", not a whole number"#,
    );
    check("lis", &["-1 2 3 4"], "not a whole number");
    check("lis", &["+1 2 3 4"], "not a whole number");
    check("lis", &["1 2 3 18446744073709551616"], "not a whole number");
    check("lis", &[&format!("{huge} 1 0 0")], "2^55");
    check("lis", &["1 2097153 0 0"], "1 GiB");

    let good = "1,h,0,Read,0,512,1";
    check("msr", &[good, "1,h,0,Read,0,512"], "6 fields");
    check("msr", &[good, "1,h,0,Trim,0,512,1"], "Trim");
    check("msr", &[good, "1,h,0,Read,0,5,12,1"], "8 fields");
    check("msr", &["1,h,0,Read,18446744073709551615,1,1"], "2^55");
    check("msr", &["1,h,0,Read,0,99999999999,1"], "1 GiB");
    check("msr", &["time,h,0,Read,0,512,1"], "timestamp");

    let header = "fio version 2 iolog";
    check("fio-iolog", &["fio version 4 iolog"], "first line");
    check("fio-iolog", &[header, "/f"], "no action");
    check("fio-iolog", &[header, "/f read 0"], "with 3 fields");
    check("fio-iolog", &[header, "/f erase 0 1"], "erase");
    check("fio-iolog", &[header, "/f read 0 -1"], "length");
    check(
        "fio-iolog",
        &["fio version 3 iolog", "/f read 0 512"],
        "time",
    );
    check("fio-iolog", &["fio version 3 iolog", "12"], "no action");

    let good = "8,0 3 1 0.5 697 Q R 8 + 8 [a]";
    check("blkparse", &[good, "8,0 3 1 0.5 697"], "5 fields");
    check(
        "blkparse",
        &[good, "sda 3 1 0.5 697 Q R 8 + 8 [a]"],
        "device",
    );
    check(
        "blkparse",
        &[good, "8,0 3 1 0.5 697 Q R 8 8 [a]"],
        "sector + count",
    );
    check("blkparse", &[good, "8,0 3 1 0.5 697 Q R"], "sector + count");
    check(
        "blkparse",
        &[good, "8,0 3 1 0.5 697 Q R 8 +"],
        "sector + count",
    );
    check(
        "blkparse",
        &[good, "8,0 3 1 0.x 697 Q R 8 + 8 [a]"],
        "fraction",
    );
    check(
        "blkparse",
        &[good, "8,0 3 1 18446744073709551615.5 697 Q R 8 + 8 [a]"],
        "too large",
    );
    check(
        "blkparse",
        &[good, &format!("8,0 3 1 0.5 697 Q R 8 + {huge} [a]")],
        "2^55",
    );

    let header = "time_us,op,offset,length";
    check("csv", &["time_us,op,offset"], "no column length");
    check("csv", &[header, "1,r,0"], "no length");
    check("csv", &[header, "1,erase,0,1"], "erase");
    check("csv", &[header, "1,r,18446744073709551615,2"], "2^55");
    check("csv", &[header, "1.5,r,0,2"], "time");
}

#[test]
fn a_line_without_end_is_refused_before_memory_is_full() {
    let text_formats = ["lis", "msr", "fio-iolog", "blkparse", "csv"];
    for format in text_formats {
        check(
            format,
            vec![b'1'; 1 << 20],
            Position::Line(1),
            "longer than 8192 bytes",
        );
    }
}

#[test]
fn an_error_shows_little_of_a_field_and_nothing_that_moves_a_terminal() {
    let field = format!("\u{1b}[2J{}", "x".repeat(1000));
    let (_, why) = damage("lis", format!("1 {field} 3 4").as_bytes());
    assert!(!why.contains('\u{1b}') && why.len() < 120, "{why}");
}

#[test]
fn a_trace_without_reads_or_writes_is_refused() {
    let cases = [
        ("lis", Vec::new(), 0),
        (
            "csv",
            b"time_us,op,offset,length\n1,flush,0,0\n".to_vec(),
            1,
        ),
        ("fio-iolog", b"fio version 2 iolog\n/f add\n".to_vec(), 0),
        ("vscsi", vscsi_v1(0x35, 0, 0, 0).repeat(3), 3),
        ("blkparse", b"CPU0 (sda):\n1\n".to_vec(), 0),
    ];
    for (format, bytes, expected) in cases {
        let name = format.parse().expect("a format");
        let failed = parse(&*bytes, Some(name), None).expect_err(format);
        let TraceErrorKind::Empty { ignored } = failed.kind else {
            panic!("{failed}");
        };
        assert_eq!(ignored, expected);
    }
}
