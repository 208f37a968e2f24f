//! Playback: maps of volumes are recorded in turn with a duty cycle of 2 %, and replayed
//! (docs/access.md).

use super::Result;
use super::status_cache::StatusCache;
use super::volumes::Volumes;
use crate::Control;
use crate::live::{are_most, changes_text, codes, whole_text};
use crate::playback::{EVERY_S, IDLE_S, PastMap, Recorded, cells_for};
use crate::sync::lock;
use api::v1::{self, Problem};
use engine::IoCounters;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Default time range, in seconds.
const USUAL_S: u64 = 3600;

/// Activity of a volume: operations of hosts, and moves of data.
type Activity = [u64; 4];

/// A volume to be recorded.
struct DueVolume {
    key: (String, String),
    serial: String,
    size: u64,
    did: Activity,
}

/// Progress of the recording.
#[derive(Default)]
struct RecordingTurn {
    /// Begin of the current pass: seconds since 1970.
    began_s: Option<u64>,
    due: VecDeque<DueVolume>,
    /// Activity of each volume when it was last recorded.
    did: BTreeMap<(String, String), Activity>,
}

/// Recorded maps of volumes.
pub struct Playback {
    control: Arc<dyn Control>,
    status: Arc<StatusCache>,
    volumes: Arc<Volumes>,
    /// Held while maps are recorded.
    turn: Mutex<RecordingTurn>,
    /// Locked briefly.
    recorded: Mutex<Recorded>,
}

fn did(counters: &IoCounters) -> Activity {
    [
        counters.reads,
        counters.writes,
        counters.promoted_bytes,
        counters.demoted_bytes,
    ]
}

fn frames(volume: &str, was: PastMap) -> v1::MapFrames {
    let cells = was.codes.len() as u32;
    let first = v1::MapFrame {
        at_s: was.at_s,
        all: Some(whole_text(&was.codes)),
        changed: None,
    };
    let mut codes = was.codes;
    let then = was.then.into_iter().map(|(at_s, changed)| {
        for (at, code) in &changed {
            codes[usize::from(*at)] = *code;
        }
        let whole = are_most(&changed, &codes);
        v1::MapFrame {
            at_s,
            all: whole.then(|| whole_text(&codes)),
            changed: (!whole).then(|| changes_text(&changed)),
        }
    });
    v1::MapFrames {
        volume: volume.to_owned(),
        size: was.size,
        cells,
        last_s: was.last_s,
        frames: std::iter::once(first).chain(then).collect(),
    }
}

impl Playback {
    /// No maps.
    pub(super) fn new(
        control: &Arc<dyn Control>,
        status: &Arc<StatusCache>,
        volumes: &Arc<Volumes>,
    ) -> Self {
        Self {
            control: Arc::clone(control),
            status: Arc::clone(status),
            volumes: Arc::clone(volumes),
            turn: Mutex::default(),
            recorded: Mutex::default(),
        }
    }

    /// Volumes to record next, the active ones first.
    fn due(&self, turn: &mut RecordingTurn, at_s: u64) {
        let mut idle = Vec::new();
        let mut there = BTreeSet::new();
        for pool in &self.status.refresh().pools {
            let volumes = pool.volumes.iter();
            for volume in volumes.filter(|volume| volume.status.state == "online") {
                let key = (pool.status.name.clone(), volume.status.name.clone());
                let did = did(&volume.counters);
                let same = turn.did.get(&key) == Some(&did);
                there.insert(key.clone());
                let due = DueVolume {
                    key,
                    serial: volume.status.serial.clone(),
                    size: volume.status.size,
                    did,
                };
                match same {
                    true => idle.push(due),
                    false => turn.due.push_back(due),
                }
            }
        }
        turn.did.retain(|key, _| there.contains(key));
        let mut recorded = lock(&self.recorded);
        recorded.tidy(at_s, |key| there.contains(key));
        let since = |due: &DueVolume| recorded.last_s(&due.key).unwrap_or(0);
        idle.retain(|due| at_s.abs_diff(since(due)) >= IDLE_S);
        turn.due.extend(idle);
    }

    /// Records maps at `at_s`, seconds since 1970, for about `most`, and continues with the next
    /// call. Each volume is recorded every ten seconds at most.
    pub fn record(&self, at_s: u64, most: Duration) {
        let began = Instant::now();
        let mut turn = lock(&self.turn);
        if turn.due.is_empty() {
            if turn
                .began_s
                .is_some_and(|began_s| at_s.abs_diff(began_s) < EVERY_S)
            {
                return;
            }
            turn.began_s = Some(at_s);
            self.due(&mut turn, at_s);
        }
        while let Some(due) = turn.due.pop_front() {
            let (pool, volume) = (&due.key.0, &due.key.1);
            let cells = cells_for(due.size);
            // Volumes that were deleted concurrently are skipped.
            if let Ok(map) = self.control.volume_map(pool, volume, 0..due.size, cells) {
                let map: Vec<v1::MapCell> =
                    map.into_iter().map(crate::mapping::ToApi::to_api).collect();
                let codes = codes(&map);
                lock(&self.recorded).note(&due.key, &due.serial, due.size, at_s, codes);
                turn.did.insert(due.key, due.did);
            }
            if began.elapsed() >= most {
                return;
            }
        }
    }

    /// The map of a volume at `from_s`, and its changes up to `to_s`, in seconds since 1970; the
    /// last hour by default. Recordings do not survive a restart.
    ///
    /// # Errors
    /// When the volume does not exist, or the times are invalid.
    pub fn frames(
        &self,
        pool: &str,
        volume: &str,
        from_s: Option<u64>,
        to_s: Option<u64>,
        now_s: u64,
    ) -> Result<v1::MapFrames> {
        let to_s = to_s.unwrap_or(now_s);
        let from_s = from_s.unwrap_or(to_s.saturating_sub(USUAL_S));
        if from_s > to_s {
            return Err(Problem::invalid(format!(
                "from ({from_s}) is after to ({to_s}): swap them"
            )));
        }
        let known = self.volumes.show(pool, volume)?;
        let key = (pool.to_owned(), volume.to_owned());
        let was = lock(&self.recorded).was(&key, &known.serial, from_s, to_s);
        let name = format!("{pool}/{volume}");
        Ok(match was {
            Some(was) if was.at_s <= to_s => frames(&name, was),
            _ => v1::MapFrames {
                volume: name,
                size: known.size,
                cells: cells_for(known.size) as u32,
                last_s: 0,
                frames: Vec::new(),
            },
        })
    }
}
