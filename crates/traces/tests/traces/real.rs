//! The beginnings of real traces, against figures from another program.

use std::path::Path;
use traces::{Trace, read};

fn real(name: &str) -> Trace {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    read(&folder.join(name), None, None).expect(name)
}

/// What the requests add up to: how many, writes, sectors, and all first sectors by exclusive or.
fn sums(trace: &Trace) -> (usize, usize, u64, u64) {
    let requests = &trace.requests;
    (
        requests.len(),
        requests.iter().filter(|request| request.write).count(),
        requests
            .iter()
            .map(|request| u64::from(request.sectors))
            .sum(),
        requests.iter().fold(0, |all, request| all ^ request.sector),
    )
}

#[test]
fn a_trace_of_cloudphysics() {
    let trace = real("cloudphysics.vscsi");
    assert_eq!(trace.format.name(), "vscsi");
    assert_eq!(sums(&trace), (64, 64, 360_960 / 512, 56_027_968));
    assert_eq!(trace.requests[0].sector, 42_932_745);
    assert_eq!(trace.requests[63].at_us, 19_598_931);
}

#[test]
fn a_trace_of_the_arc_paper() {
    let trace = real("p3.lis");
    assert_eq!(trace.format.name(), "lis");
    assert_eq!(sums(&trace), (100, 0, 2858, 6_118_030));
    assert_eq!(trace.requests[99].sector, 1_584_357);
}
