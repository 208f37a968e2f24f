//! A small trace in each format, built byte by byte, and the requests that it has.

use traces::{Format, Request};

pub struct Sample {
    pub format: &'static str,
    pub bytes: Vec<u8>,
    pub requests: Vec<Request>,
    pub devices: &'static [&'static str],
    pub ignored: u64,
}

impl Sample {
    pub fn format(&self) -> Format {
        self.format.parse().expect("a format of the table")
    }
}

fn request(at_us: u64, sector: u64, sectors: u32, device: u16, write: bool) -> Request {
    Request {
        at_us,
        sector,
        sectors,
        device,
        write,
    }
}

pub fn read(at_us: u64, sector: u64, sectors: u32) -> Request {
    request(at_us, sector, sectors, 0, false)
}

pub fn write(at_us: u64, sector: u64, sectors: u32) -> Request {
    request(at_us, sector, sectors, 0, true)
}

fn on(device: u16, request: Request) -> Request {
    Request { device, ..request }
}

pub fn vscsi_v1(command: u16, length: u32, block: u64, time_us: u64) -> Vec<u8> {
    // The serial number looks like a mark of version 2.
    let mut record = 0x0200_0001u32.to_le_bytes().to_vec();
    record.extend(length.to_le_bytes());
    record.extend(1u32.to_le_bytes());
    record.extend(command.to_le_bytes());
    record.extend(0x0100u16.to_le_bytes());
    record.extend(block.to_le_bytes());
    record.extend(time_us.to_le_bytes());
    record
}

pub fn vscsi_v2(command: u16, length: u32, block: u64, time_us: u64) -> Vec<u8> {
    let mut record = command.to_le_bytes().to_vec();
    record.extend(0x0200u16.to_le_bytes());
    record.extend(7u32.to_le_bytes());
    record.extend(length.to_le_bytes());
    record.extend(1u32.to_le_bytes());
    record.extend(block.to_le_bytes());
    record.extend(time_us.to_le_bytes());
    record.extend(250u64.to_le_bytes());
    record
}

pub fn oracle_general(time_s: u32, id: u64, size: u32, next: i64) -> Vec<u8> {
    let mut record = time_s.to_le_bytes().to_vec();
    record.extend(id.to_le_bytes());
    record.extend(size.to_le_bytes());
    record.extend(next.to_le_bytes());
    record
}

/// The stages and kinds of blktrace.
pub const QUEUE: u32 = 1;
pub const COMPLETE: u32 = 8;
pub const READ: u32 = 1 << 16;
pub const WRITE: u32 = 1 << 17;
pub const FLUSH: u32 = 1 << 18;
pub const NOTIFY: u32 = 1 << 26;
pub const DISCARD: u32 = 1 << 29;
const CGROUP: u32 = 1 << 8;

pub fn blktrace(big: bool, time_ns: u64, sector: u64, bytes: u32, action: u32) -> Vec<u8> {
    let pdu = if action & CGROUP == 0 { 0u16 } else { 8 };
    let u16 = |n: u16| {
        if big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let u32 = |n: u32| {
        if big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let u64 = |n: u64| {
        if big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        }
    };
    let mut record = u32(0x6561_7407).to_vec();
    record.extend(u32(1));
    record.extend(u64(time_ns));
    record.extend(u64(sector));
    // Bytes, action, process, device 8,17 and CPU.
    for number in [bytes, action, 697, 8 << 20 | 17, 3] {
        record.extend(u32(number));
    }
    record.extend(u16(0));
    record.extend(u16(pdu));
    record.extend(vec![0xab; pdu.into()]);
    record
}

fn blktraces(big: bool) -> Vec<u8> {
    [
        // A time stamp, whose lower half is 1 as that of a queued request is.
        blktrace(big, 0, 0, 0, NOTIFY | 1),
        blktrace(big, 5_000_000, 100, 4096, QUEUE | READ | CGROUP),
        blktrace(big, 5_600_000, 100, 4096, COMPLETE | READ),
        blktrace(big, 7_000_999, 300, 512, QUEUE | WRITE),
        blktrace(big, 7_100_000, 0, 0, QUEUE | FLUSH),
        blktrace(big, 7_200_000, 64, 4096, QUEUE | WRITE | DISCARD),
    ]
    .concat()
}

const BLKPARSE: &str = "\
Input file sda.blktrace.0 added

  8,0    3        1     0.000000000   697  Q   R 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  G   R 223490 + 8 [kjournald]
  8,0    3        0     0.000002000     0  m   N cfq697S / alloced
  8,16   1       11     0.250009500  1041  Q WSM 9 + 16 [a program [x]]
  8,0    3        3     0.300000000   697  Q   D 64 + 128 [fstrim]
  8,0    3        4     0.310000000   697  Q FWS [kworker/0:1H]
  8,0    3        5     0.320000000   697  D   W 9 + 16 [kjournald]
CPU3 (sda):
 Reads Queued:           1,        4KiB\t Writes Queued:           1,        8KiB
";

const MSR: &str = "\
128166372003061629,hm,0,Read,383496192,32768,413\r
128166372003061829,prxy,1,Write,1000,24,75\r
128166372003061000,hm,0,Write,512,512,75\r
128166372003062629,hm,0,Read,512,0,75\r
";

const FIO_2: &str = "\
fio version 2 iolog
/dev/sda add
/dev/sda open
/dev/sda read 0 4096
/dev/sda wait 150 0
/dev/sdb write 1024 512
/dev/sda wait 200 0
/dev/sda trim 0 4096
/dev/sda sync 0 0
/dev/sda write 8192 512
/dev/sda close
";

const FIO_3: &str = "\
fio version 3 iolog
27 /dev/sda add
162 /dev/sda open
166 /dev/sda read 0 4096
369 /dev/sda write 1024 512
400 /dev/sda datasync 0 0
1000169 /dev/sda close
";

const CSV: &str = "\
Length, op,time_us,host,offset
4096,R,1000,a,8192
512,write,1500,b,0
4096,discard,1600,b,0
1,W,1400,c,511
2,Read,2000,c,511
";

fn sample(format: &'static str, bytes: impl Into<Vec<u8>>, requests: Vec<Request>) -> Sample {
    Sample {
        format,
        bytes: bytes.into(),
        requests,
        devices: &[],
        ignored: 0,
    }
}

/// At least one for every row of the table of formats.
pub fn samples() -> Vec<Sample> {
    let vscsi = vec![read(0, 8, 8), write(40, 100, 1), write(40, 5, 9)];
    let vscsi_of = |record: fn(u16, u32, u64, u64) -> Vec<u8>| {
        [
            record(0x28, 4096, 8, 1000),
            record(0x12, 36, 0, 1010),
            record(0x8a, 512, 100, 1040),
            record(0x0a, 4097, 5, 1030),
        ]
        .concat()
    };
    let oracle = [
        oracle_general(10, 2048, 4096, 3),
        oracle_general(10, 64, 512, -1),
        oracle_general(12, 2048, 4096, i64::MAX),
    ];
    let blktrace = vec![read(0, 100, 8), write(2000, 300, 1)];
    vec![
        Sample {
            ignored: 1,
            ..sample("vscsi", vscsi_of(vscsi_v1), vscsi.clone())
        },
        Sample {
            ignored: 1,
            ..sample("vscsi", vscsi_of(vscsi_v2), vscsi)
        },
        Sample {
            devices: &["hm_0", "prxy_1"],
            ignored: 1,
            ..sample(
                "msr",
                MSR,
                vec![
                    read(0, 749_016, 64),
                    on(1, write(20, 1, 1)),
                    write(20, 1, 1),
                ],
            )
        },
        Sample {
            devices: &["/dev/sda", "/dev/sdb"],
            ignored: 2,
            ..sample(
                "fio-iolog",
                FIO_2,
                vec![read(0, 0, 8), on(1, write(150, 2, 1)), write(350, 16, 1)],
            )
        },
        Sample {
            devices: &["/dev/sda"],
            ignored: 1,
            ..sample("fio-iolog", FIO_3, vec![read(0, 0, 8), write(203, 2, 1)])
        },
        Sample {
            devices: &["8,17"],
            ignored: 2,
            ..sample("blktrace", blktraces(false), blktrace.clone())
        },
        Sample {
            devices: &["8,17"],
            ignored: 2,
            ..sample("blktrace", blktraces(true), blktrace)
        },
        Sample {
            devices: &["8,0", "8,16"],
            ignored: 2,
            ..sample(
                "blkparse",
                BLKPARSE,
                vec![read(0, 223_490, 8), on(1, write(250_009, 9, 16))],
            )
        },
        Sample {
            ignored: 1,
            ..sample(
                "lis",
                "230027 8 0 0\n1842745 64 0 1\n5 0 0 2\n7 1 50 3\n",
                vec![read(0, 230_027, 8), read(0, 1_842_745, 64), read(0, 7, 1)],
            )
        },
        sample(
            "oracle-general",
            oracle.concat(),
            vec![read(0, 2048, 8), read(0, 64, 1), read(2_000_000, 2048, 8)],
        ),
        Sample {
            ignored: 1,
            ..sample(
                "csv",
                CSV,
                vec![
                    read(0, 16, 8),
                    write(500, 0, 1),
                    write(500, 0, 1),
                    read(1000, 0, 2),
                ],
            )
        },
    ]
}
