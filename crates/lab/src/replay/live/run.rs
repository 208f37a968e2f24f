//! The volume, the pool before it where there is one, and the table.

use super::layout::{Layout, Piece};
use super::player::{Played, play};
use super::row::{HEAD, Row, forecast, since, slow_requests};
use crate::arguments::Replay;
use crate::failure::{Failure, Result, While};
use crate::nbd::{Client, Place};
use crate::scene::{POOL, Scene, Sizes};
use crate::screen::{self, Progress};
use std::ops::Range;
use std::path::Path;
use traces::Request;
use units::{BLOCK, format_bytes};

const MIB: u64 = 1 << 20;
/// The least RAM cache that the daemon takes, and its part of all that is fast where that is more.
const RAM_LEAST: u64 = 16 * MIB;
const RAM_SHARE: u64 = 20;
/// Approximate size of a pool's metadata on its fast drive: a constant and a share of it.
const METADATA: u64 = 54 * MIB;
const METADATA_SHARE: u64 = 50;
/// The smallest fast tier that a pool can have.
const FAST_LEAST: u64 = 32 * MIB;
/// Pieces in which a volume is written before, and how many of them at a time.
const FILL: u32 = 1 << 20;
const FILL_OUTSTANDING: usize = 8;

/// A trace, ready to be played.
struct Score<'a> {
    requests: &'a [Request],
    layout: Layout,
    used: Vec<Range<u64>>,
}

impl<'a> Score<'a> {
    fn of(requests: &'a [Request]) -> Result<Self> {
        let layout = Layout::of(requests)?;
        let used = layout.used(requests);
        Ok(Self {
            requests,
            layout,
            used,
        })
    }

    /// Bytes of all that is used.
    fn used_bytes(&self) -> u64 {
        self.used.iter().map(|used| used.end - used.start).sum()
    }

    /// Writes all that the trace will read or write.
    fn fill(&self, client: &mut Client) -> Result<()> {
        let pieces = self.used.iter().flat_map(|used| {
            let end = used.end;
            let offsets = used.clone().step_by(FILL as usize);
            offsets.map(move |offset| Piece {
                offset,
                length: (end - offset).min(u64::from(FILL)) as u32,
                write: true,
            })
        });
        let mut progress = Progress::new();
        let filled = play(client, pieces, FILL_OUTSTANDING, |pieces| {
            if progress.is_due() {
                progress.draw(&format!(
                    "  filling: {}",
                    format_bytes(pieces * u64::from(FILL))
                ));
            }
            Ok(())
        })?;
        progress.clear();
        let seconds = filled.took.as_secs_f64();
        println!("  filled {} in {seconds:.0} s", format_bytes(filled.bytes));
        Ok(())
    }

    fn play(&self, client: &mut Client, outstanding: u16) -> Result<Played> {
        let mut progress = Progress::new();
        let pieces = self.requests.iter();
        let pieces = pieces.flat_map(|request| self.layout.pieces(request));
        let all = self.requests.len() as f64;
        let played = play(client, pieces, usize::from(outstanding), |requests| {
            if progress.is_due() {
                let share = (requests as f64 / all).min(1.0);
                progress.draw(&format!("  replaying {}", screen::bar(share, 30)));
            }
            Ok(())
        })?;
        progress.clear();
        Ok(played)
    }
}

fn connect(place: &Place, bytes: u64) -> Result<Client> {
    let doing = || format!("cannot connect to {}", place.socket.display());
    let client = Client::connect(&place.socket, &place.export).during(doing)?;
    match client.size >= bytes {
        true => Ok(client),
        false => Err(Failure::new(format!(
            "the trace reaches {} and the export '{}' has {}: export a larger volume",
            format_bytes(bytes),
            place.export,
            format_bytes(client.size)
        ))),
    }
}

/// Plays requests to what is exported somewhere, and prints how soon they were answered.
///
/// # Errors
/// When it is too small or gives an error, or a person ends it.
pub fn elsewhere(with: &Replay, requests: &[Request], place: &Place) -> Result<()> {
    let score = Score::of(requests)?;
    let mut client = connect(place, score.layout.bytes())?;
    score.fill(&mut client)?;
    let played = score.play(&mut client, with.outstanding)?;
    let ms = |percentile| {
        format!(
            "{:.3}",
            played.latencies.percentile(percentile) as f64 / 1e6
        )
    };
    let seconds = played.took.as_secs_f64();
    let row = vec![
        place.export.clone(),
        screen::thousands(played.requests as f64 / seconds),
        format!("{:.3}", played.mean_ms()),
        ms(50.0),
        ms(99.0),
    ];
    let head = ["live", "IOPS", "mean ms", "p50 ms", "p99 ms"];
    print!("{}", screen::table(&head, &[row]));
    Ok(())
}

/// Plays requests that use `distinct` blocks to pools of the sizes that are requested, one after the other, and
/// prints a table.
///
/// # Errors
/// When a pool cannot be made or gives an error, or a person ends it.
pub fn pools(convect: &Path, with: &Replay, requests: &[Request], distinct: u64) -> Result<()> {
    let score = Score::of(requests)?;
    let mut rows = Vec::new();
    for percent in &with.sizes {
        let bytes = distinct * BLOCK as u64 * u64::from(*percent) / 100;
        println!(
            "\n{percent} % of the blocks in use: {}",
            format_bytes(bytes)
        );
        let mut scene = Scene::new(convect, "replay", sizes(&score, bytes)?, &with.behind)?;
        let row = in_scene(&score, &mut scene, with.outstanding);
        rows.push(scene.daemon.explain(row)?);
    }
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    print!("\n{}", screen::table(&HEAD, &cells));
    Ok(())
}

/// For a pool with a total of RAM and fast tier, in bytes.
fn sizes(score: &Score<'_>, bytes: u64) -> Result<Sizes> {
    let ram = (bytes / RAM_SHARE).max(RAM_LEAST);
    let fast = bytes.saturating_sub(ram);
    if fast < FAST_LEAST {
        return Err(Failure::new(format!(
            "{} of RAM and fast tier are less than a pool can have ({} and {}): take a larger part with --sizes, or a \
             trace that uses more",
            format_bytes(bytes),
            format_bytes(RAM_LEAST),
            format_bytes(FAST_LEAST)
        )));
    }
    let volume = score.layout.bytes().next_multiple_of(MIB);
    let drive = (fast + fast / METADATA_SHARE + METADATA).next_multiple_of(MIB);
    Ok(Sizes {
        ram: Some(ram),
        used: score.used_bytes(),
        // The more a pool can hold, the larger its metadata: a trace may use little and reach far.
        slow: score.used_bytes() * 3 / 2,
        disks: 1,
        ..Sizes::whole(volume, drive, 0)
    })
}

fn in_scene(score: &Score<'_>, scene: &mut Scene, outstanding: u16) -> Result<Row> {
    let place = Place {
        export: "disk".to_owned(),
        socket: scene.nbd_socket(),
    };
    let connect = || connect(&place, score.layout.bytes());
    score.fill(&mut connect()?)?;
    scene.cool()?;
    // Its forecasts are to know of the trace alone.
    scene.daemon.stop()?;
    scene.daemon.launch()?;
    let (daemon, mut client) = (&scene.daemon, connect()?);
    let (before, pool) = (daemon.counters(POOL)?, daemon.pool(POOL)?);
    let played = score.play(&mut client, outstanding)?;
    let (counters, after) = (daemon.counters(POOL)?, daemon.pool(POOL)?);
    let what_if = daemon.what_if(POOL)?;
    Ok(Row {
        fast_bytes: after.fast_capacity + after.ram_limit,
        played,
        counters: since(counters, before),
        slow: slow_requests(&after) - slow_requests(&pool),
        forecast: [50, 100, 200].map(|percent| forecast(&what_if.pool, percent)),
    })
}
