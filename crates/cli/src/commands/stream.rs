//! `convect send` and `convect receive`.

use super::snapshot::named;
use crate::confirm::query_of;
use crate::progress::{bar, duration};
use crate::show::{facts, print, print_json, read};
use crate::stream_arguments::{Receive, Send};
use crate::{Client, Failure, object};
use api::Operation;
use api::v1::{Problem, Received, Volume};
use indicatif::ProgressBar;
use std::io::{IsTerminal, Read, Write};
use std::time::Instant;
use stream::{Begin, Decoder, Record, Totals};
use units::format_bytes;

/// Bytes read from a stream at a time.
const PART: usize = 256 << 10;

/// Verifies and counts the stream while it is passed on.
struct Passed {
    decoder: Decoder,
    bytes: u64,
    /// Error that the sender reported inside the stream.
    failed: Option<String>,
    began: Instant,
    bar: ProgressBar,
}

impl Passed {
    fn new(snapshot: &str, quiet: bool) -> Self {
        let bar = match quiet {
            true => ProgressBar::hidden(),
            false => bar(),
        };
        bar.set_prefix(format!("send {snapshot}"));
        Self {
            decoder: Decoder::default(),
            bytes: 0,
            failed: None,
            began: Instant::now(),
            bar,
        }
    }

    /// Verifies the next bytes.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.decoder.push(bytes);
        while let Some(record) = self.decoder.next_record().map_err(|error| bad(&error))? {
            if let Record::Failed(why) = record {
                self.failed = Some(why);
            }
        }
        self.bytes += bytes.len() as u64;
        self.show();
        Ok(())
    }

    fn show(&self) {
        let Some(Begin { size, start, .. }) = self.decoder.begun() else {
            return;
        };
        let seconds = self.began.elapsed().as_secs_f64();
        let here = self.decoder.position();
        let done = (here - start) as f64;
        let rate = (self.bytes as f64 / seconds.max(0.001)) as u64;
        let left = seconds * (size - here) as f64 / done.max(1.0);
        let share = here as f64 / *size as f64;
        self.bar.set_position((share * 1000.0) as u64);
        self.bar.set_message(format!(
            "{:.1} %, {}, {}/s, {} left",
            share * 100.0,
            format_bytes(self.bytes),
            format_bytes(rate),
            duration(left as u64)
        ));
    }
}

fn bad(error: &stream::StreamError) -> Failure {
    Failure::Failed(format!("the daemon's stream is corrupt: {error}"))
}

fn unwritten(error: &std::io::Error) -> Failure {
    Failure::Failed(format!(
        "cannot write the stream: {error}: resume it with the receiver's token (`convect receive \
         --status`)"
    ))
}

/// Runs `convect send`: writes a snapshot stream to the standard output.
pub fn send(client: &Client, json: bool, options: &Send) -> Result<(), Failure> {
    let (pool, volume, name) = named(&options.snapshot)?;
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        return Err(Failure::Usage(
            "refusing to write a binary stream to a terminal: redirect it to a file or pipe it \
             into `convect receive`"
                .to_owned(),
        ));
    }
    let from = options.from.as_deref().map(|from| ("from", from));
    let resume = options.resume.as_deref().map(|token| ("resume", token));
    let query: Vec<_> = from.into_iter().chain(resume).collect();
    let segments = [pool, volume, name];
    let mut stream = client.download(Operation::SnapshotSend, &segments, &query)?;
    let quiet = json || !std::io::stderr().is_terminal();
    let mut passed = Passed::new(&options.snapshot, quiet);
    let mut part = vec![0; PART];
    loop {
        let length = stream.read(&mut part).map_err(|error| {
            Failure::Failed(format!(
                "cannot read the daemon's stream: {error}: see its log"
            ))
        })?;
        if length == 0 {
            break;
        }
        passed.take(&part[..length])?;
        let written = out.write_all(&part[..length]);
        written.map_err(|error| unwritten(&error))?;
    }
    out.flush().map_err(|error| unwritten(&error))?;
    passed.bar.finish_and_clear();
    passed.decoder.end().map_err(|error| bad(&error))?;
    if let Some(why) = passed.failed {
        return Err(Failure::Failed(format!("the stream is incomplete: {why}")));
    }
    let size = passed.decoder.begun().map_or(0, |begin| begin.size);
    let Totals { data, zeroes, read } = passed.decoder.totals();
    let line = match json {
        true => serde_json::json!({
            "data": data, "zeroes": zeroes, "stream": passed.bytes, "read": read, "size": size,
        })
        .to_string(),
        false => format!(
            "{} sent: {} data and {} zeroes in a stream of {}; read {} of {} ({:.1} %)",
            options.snapshot,
            format_bytes(data),
            format_bytes(zeroes),
            format_bytes(passed.bytes),
            format_bytes(read),
            format_bytes(size),
            100.0 * read as f64 / size.max(1) as f64
        ),
    };
    // The command has succeeded even if this summary cannot be written.
    let _ = writeln!(std::io::stderr(), "{line}");
    Ok(())
}

fn status(client: &Client, json: bool, volume: &str) -> Result<(), Failure> {
    let (pool, name) = object(volume)?;
    let shown: Volume = read(&client.get(Operation::VolumeShow, &[pool, name])?)?;
    let Some(receiving) = shown.receiving else {
        return Err(Failure::Refused(Problem::not_found(format!(
            "volume {volume} has no interrupted receive: nothing to resume"
        ))));
    };
    if json {
        let text = serde_json::to_vec(&receiving);
        return print_json(&text.unwrap_or_default(), true);
    }
    let done = format!(
        "{} of {}",
        format_bytes(receiving.done),
        format_bytes(shown.size)
    );
    print(&facts(&[
        ("volume", volume.to_owned()),
        ("snapshot", receiving.snapshot),
        ("received", done),
        ("token", receiving.token),
    ]))
}

/// Runs `convect receive`: creates or updates a volume from the standard input.
pub fn receive(client: &Client, json: bool, options: &Receive) -> Result<(), Failure> {
    if options.status {
        return status(client, json, &options.volume);
    }
    let (pool, volume) = object(&options.volume)?;
    let mut input = std::io::stdin().lock();
    if input.is_terminal() {
        return Err(Failure::Usage(
            "refusing to read a stream from a terminal: redirect a file or pipe the output of \
             `convect send`"
                .to_owned(),
        ));
    }
    let force = query_of(options.force);
    let segments = [pool, volume];
    let answer = client.upload(Operation::VolumeReceive, &segments, force, &mut input)?;
    if json {
        return print_json(&answer, true);
    }
    let received: Received = read(&answer)?;
    print(&format!(
        "{}/{}@{} received: {} data and {} zeroes in a stream of {}\n",
        received.pool,
        received.volume,
        received.snapshot,
        format_bytes(received.data),
        format_bytes(received.zeroes),
        format_bytes(received.stream)
    ))
}
