//! Compressed traces as plain ones: gzip (RFC 1952) and Zstandard (RFC 8878), known by their magic
//! numbers, in one or several members or frames.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest window that a frame may ask memory for: 128 MiB, as the `zstd` program takes.
const WINDOW_LOG_MAX: u32 = 27;

/// A reader of what is plain, whether or not it is compressed.
pub(crate) fn plain<'a>(mut reader: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut magic = Vec::new();
    reader
        .by_ref()
        .take(ZSTD.len() as u64)
        .read_to_end(&mut magic)?;
    let is_gzip = magic.starts_with(&GZIP);
    let is_zstd = magic.starts_with(&ZSTD);
    let whole = Cursor::new(magic).chain(reader);
    if is_gzip {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(whole))));
    }
    if is_zstd {
        let mut decoder = zstd::Decoder::with_buffer(whole)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        return Ok(Box::new(BufReader::new(decoder)));
    }
    Ok(Box::new(whole))
}
