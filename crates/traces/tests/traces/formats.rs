//! Properties of every row of the table of formats.

use crate::samples::{Sample, samples};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{BufReader, Write};
use traces::{Format, Trace, parse};

/// The sample as it should be read, whatever its bytes went through.
#[track_caller]
fn check(sample: &Sample, format: Option<Format>, bytes: &[u8]) {
    let expected = Trace {
        requests: sample.requests.clone(),
        format: sample.format(),
        devices: sample.devices.iter().map(|name| name.to_string()).collect(),
        ignored: sample.ignored,
    };
    let trace = parse(bytes, format, None);
    assert_eq!(trace.expect(sample.format), expected);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("finished")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 0).expect("encoded")
}

#[test]
fn every_format_has_a_sample_and_says_what_it_is() {
    for format in Format::all() {
        let mut all = samples().into_iter();
        assert!(all.any(|sample| sample.format() == format), "{format}");
        assert!(!format.about().is_empty());
        assert_eq!(format.name().parse(), Ok(format));
    }
}

#[test]
fn requests_are_as_the_format_says() {
    for sample in samples() {
        check(&sample, Some(sample.format()), &sample.bytes);
    }
}

#[test]
fn a_format_is_recognised_by_its_content() {
    for sample in samples() {
        check(&sample, None, &sample.bytes);
    }
}

#[test]
fn a_compressed_trace_is_the_plain_one() {
    for sample in samples() {
        let half = sample.bytes.len() / 2;
        let (first, second) = sample.bytes.split_at(half);
        for compress in [gzip, zstd] {
            check(&sample, None, &compress(&sample.bytes));
            // Parallel compressors write several members.
            check(&sample, None, &[compress(first), compress(second)].concat());
        }
    }
}

#[test]
fn a_reader_may_give_single_bytes() {
    for sample in samples() {
        let reader = BufReader::with_capacity(1, &*sample.bytes);
        let trace = parse(reader, None, None).expect(sample.format);
        assert_eq!(trace.requests, sample.requests);
    }
}

#[test]
fn requests_beyond_the_prefix_are_read_too() {
    for sample in samples() {
        // Headers may stand once only.
        let header = match sample.format {
            "csv" | "fio-iolog" => sample.bytes.iter().position(|b| *b == b'\n'),
            _ => None,
        };
        let (header, body) = sample.bytes.split_at(header.map_or(0, |at| at + 1));
        let body = match sample.format {
            "blkparse" => body.split(|b| *b == b'C').next().unwrap_or_default(),
            _ => body,
        };
        let bytes = [header, &body.repeat(200)].concat();
        assert!(bytes.len() > 8192);
        let trace = parse(&*bytes, Some(sample.format()), None).expect(sample.format);
        assert_eq!(trace.requests.len(), 200 * sample.requests.len());
        assert_eq!(trace.ignored, 200 * sample.ignored);
        assert_eq!(trace.devices, sample.devices);
        assert!(trace.requests.is_sorted_by_key(|request| request.at_us));
    }
}

#[test]
fn a_limit_takes_the_first_requests_and_reads_no_further() {
    for sample in samples() {
        let mut bytes = sample.bytes.clone();
        bytes.extend([0xff; 100]);
        let trace = parse(&*bytes, Some(sample.format()), Some(1)).expect(sample.format);
        assert_eq!(trace.requests, sample.requests[..1]);
    }
}
