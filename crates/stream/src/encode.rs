//! Records to bytes.

use crate::fields::{Sum, push_id};
use crate::record::{Begin, FAILED_MAX, HEADER, MAGIC, Totals, VERSION, kind};

/// Writes one stream, record by record, to the end of what it is given.
pub struct Encoder {
    sum: Sum,
    sequence: u64,
    totals: Totals,
}

impl Encoder {
    /// A stream that begins with `begin`, which is written to `out`.
    pub fn begin(begin: &Begin, out: &mut Vec<u8>) -> Self {
        let mut encoder = Self {
            sum: Sum::new(),
            sequence: 0,
            totals: Totals::default(),
        };
        let from = out.len();
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        encoder.sum.add(&out[from..]);
        let mut payload = Vec::new();
        payload.extend(0u64.to_le_bytes());
        payload.extend(begin.pool.0.to_le_bytes());
        push_id(&mut payload, Some(begin.to));
        push_id(&mut payload, begin.from);
        payload.extend(begin.size.to_le_bytes());
        payload.extend(begin.start.to_le_bytes());
        payload.extend(begin.lba_size.to_le_bytes());
        payload.extend((units::BLOCK as u32).to_le_bytes());
        payload.extend((begin.volume.len() as u16).to_le_bytes());
        payload.extend((begin.snapshot.len() as u16).to_le_bytes());
        payload.extend(begin.volume.as_bytes());
        payload.extend(begin.snapshot.as_bytes());
        encoder.record(kind::BEGIN, &[&payload], out);
        encoder
    }

    fn record(&mut self, kind: u32, payload: &[&[u8]], out: &mut Vec<u8>) {
        let length: usize = payload.iter().map(|part| part.len()).sum();
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        header[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        self.sum.add(&header[..16]);
        payload.iter().for_each(|part| self.sum.add(part));
        header[16..].copy_from_slice(&self.sum.value().to_le_bytes());
        out.extend(header);
        payload.iter().for_each(|part| out.extend(*part));
        self.sequence += 1;
    }

    /// Data of a range that begins at `offset`: at most [`crate::DATA_MAX`] bytes, in whole blocks.
    pub fn data(&mut self, offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
        self.totals.data += bytes.len() as u64;
        self.record(kind::DATA, &[&offset.to_le_bytes(), bytes], out);
    }

    /// A range of zeroes, in bytes.
    pub fn zeroes(&mut self, offset: u64, len: u64, out: &mut Vec<u8>) {
        self.totals.zeroes += len;
        let parts: [&[u8]; 2] = [&offset.to_le_bytes(), &len.to_le_bytes()];
        self.record(kind::ZEROES, &parts, out);
    }

    /// The end of a whole stream for which `read` bytes were read.
    pub fn end(mut self, read: u64, out: &mut Vec<u8>) {
        let Totals { data, zeroes, .. } = self.totals;
        let payload = [data, zeroes, read].map(u64::to_le_bytes).concat();
        self.record(kind::END, &[&payload], out);
    }

    /// The end of a stream that cannot continue.
    pub fn failed(mut self, why: &str, out: &mut Vec<u8>) {
        let end = why.floor_char_boundary(FAILED_MAX);
        self.record(kind::FAILED, &[&why.as_bytes()[..end]], out);
    }
}
