//! Parses responses of other daemons as untrusted input: unknown parts are ignored, and everything
//! is limited. Pure functions.

use api::v1::{Server, ServerAlert, ServerLoad, ServerPool, ServerState, Severity};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of pools and of alerts.
const POOLS_MAX: usize = 64;
const ALERTS_MAX: usize = 8;
/// Maximum length of a text, in characters.
const TEXT_MAX: usize = 300;
/// Maximum age of counters for computing a load.
const BEFORE_MAX: Duration = Duration::from_secs(60);

/// Counters of a pool: reads, writes, bytes read, bytes written.
type Counted = [u64; 4];

/// A pool of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SeenPool {
    /// Its name.
    pub name: String,
    /// State of the pool.
    pub state: String,
    /// Capacity in bytes.
    pub capacity: u64,
    /// Used bytes.
    pub used: u64,
    /// Forecast seconds until a part of it is full.
    pub seconds_to_full: Option<u64>,
    /// Counters since it was opened.
    pub counted: Option<Counted>,
}

/// State of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServerSummary {
    /// Its pools.
    pub pools: Vec<SeenPool>,
    /// Its open alerts.
    pub alerts: Vec<(Severity, String)>,
    /// Number of open alerts.
    pub alerts_open: u64,
    /// Number of running jobs.
    pub jobs_running: u64,
}

/// Counters of pools at the previous poll, by name.
#[derive(Default)]
pub struct Before {
    at: Option<Duration>,
    counted: BTreeMap<String, Counted>,
    load: BTreeMap<String, ServerLoad>,
}

#[derive(Deserialize)]
struct Items<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
    #[serde(default)]
    absent: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Pool {
    name: String,
    state: String,
    #[serde(default)]
    capacity: u64,
    #[serde(default)]
    used: u64,
    #[serde(default)]
    fills: Vec<Fill>,
}

#[derive(Deserialize)]
struct Fill {
    seconds_to_full: Option<u64>,
}

#[derive(Deserialize)]
struct Alert {
    #[serde(default)]
    severity: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct State {
    #[serde(default)]
    pools: Vec<StatePool>,
    #[serde(default)]
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct StatePool {
    name: String,
    counters: Counters,
}

#[derive(Deserialize)]
struct Counters {
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
}

#[derive(Deserialize)]
struct Job {
    state: String,
}

/// Sanitises and shortens an untrusted text.
fn short(text: &str) -> String {
    let shown = text.chars().filter(|letter| !letter.is_control());
    shown.take(TEXT_MAX).collect()
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|_| "its response is malformed".to_owned())
}

/// Data of the first `state` event of a stream.
fn state_of(events: &[u8]) -> Result<&[u8], String> {
    let lines = events.split(|byte| *byte == b'\n');
    let mut after = lines.skip_while(|line| line.trim_ascii_end() != b"event: state");
    let data = after.nth(1).and_then(|line| line.strip_prefix(b"data: "));
    data.ok_or_else(|| "its response is malformed".to_owned())
}

impl ServerSummary {
    /// Parses its pools, its alerts and its first live event.
    ///
    /// # Errors
    /// When one of them is malformed.
    pub fn read(pools: &[u8], alerts: &[u8], live: &[u8]) -> Result<Self, String> {
        let pools: Items<Pool> = read(pools)?;
        let alerts: Items<Alert> = read(alerts)?;
        let state: State = read(state_of(live)?)?;
        let counted = |name: &str| {
            let found = state.pools.iter().find(|pool| pool.name == name)?;
            let Counters {
                reads,
                writes,
                read_bytes,
                write_bytes,
            } = found.counters;
            Some([reads, writes, read_bytes, write_bytes])
        };
        let absent = pools.absent.iter().map(|pool| SeenPool {
            name: short(pool["name"].as_str().unwrap_or_default()),
            state: "absent".to_owned(),
            ..SeenPool::default()
        });
        let open = pools.items.iter().map(|pool| SeenPool {
            name: short(&pool.name),
            state: short(&pool.state),
            capacity: pool.capacity,
            used: pool.used,
            seconds_to_full: pool
                .fills
                .iter()
                .filter_map(|fill| fill.seconds_to_full)
                .min(),
            counted: counted(&pool.name),
        });
        let severity = |text: &str| match text {
            "critical" => Severity::Critical,
            "info" => Severity::Info,
            _ => Severity::Warning,
        };
        let told = alerts.items.iter().take(ALERTS_MAX);
        Ok(Self {
            pools: absent.chain(open).take(POOLS_MAX).collect(),
            alerts: told
                .map(|alert| (severity(&alert.severity), short(&alert.message)))
                .collect(),
            alerts_open: alerts.items.len() as u64,
            jobs_running: state
                .jobs
                .iter()
                .filter(|job| job.state == "running")
                .count() as u64,
        })
    }

    /// The state as a card, with the present load.
    pub fn card(&self, name: &str, url: &str, loads: &Before) -> Server {
        let pools = self.pools.iter().map(|pool| ServerPool {
            name: pool.name.clone(),
            state: pool.state.clone(),
            capacity: pool.capacity,
            used: pool.used,
            seconds_to_full: pool.seconds_to_full,
            load: loads.load.get(&pool.name).copied(),
        });
        let alerts = self.alerts.iter().take(ALERTS_MAX);
        let alerts = alerts.map(|(severity, message)| ServerAlert {
            severity: *severity,
            message: message.clone(),
        });
        Server {
            name: name.to_owned(),
            url: url.to_owned(),
            pin: None,
            state: ServerState::Online,
            error: None,
            answered_s: None,
            pools: pools.take(POOLS_MAX).collect(),
            alerts: alerts.collect(),
            alerts_open: self.alerts_open,
            jobs_running: self.jobs_running,
        }
    }
}

impl Before {
    /// Records a state at `at`, a monotonic time, and computes the load since the previous one.
    pub fn note(&mut self, seen: &ServerSummary, at: Duration) {
        let elapsed = self.at.and_then(|before| at.checked_sub(before));
        let known = elapsed.filter(|elapsed| !elapsed.is_zero() && *elapsed <= BEFORE_MAX);
        let before = std::mem::take(&mut self.counted);
        self.load.clear();
        for pool in &seen.pools {
            let Some(now) = pool.counted else { continue };
            self.counted.insert(pool.name.clone(), now);
            if let (Some(elapsed), Some(before)) = (known, before.get(&pool.name)) {
                let rate = |index: usize| {
                    // Counters of a reopened pool restart at 0.
                    let grown = now[index].checked_sub(before[index]).unwrap_or(now[index]);
                    grown as f64 / elapsed.as_secs_f64()
                };
                let load = ServerLoad {
                    reads: rate(0),
                    writes: rate(1),
                    read_bytes: rate(2),
                    write_bytes: rate(3),
                };
                self.load.insert(pool.name.clone(), load);
            }
        }
        self.at = Some(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOLS: &[u8] = br#"{"items":[{"name":"tank","state":"online","capacity":10,"used":4,"more":1,
        "fills":[{"part":"space","seconds_to_full":90},{"seconds_to_full":null},{"seconds_to_full":50}]}],
        "absent":[{"id":"x","name":"lake"}]}"#;
    const ALERTS: &[u8] =
        br#"{"items":[{"severity":"critical","message":"a\u0007b"},{"severity":"odd"}]}"#;

    fn live(reads: u64) -> Vec<u8> {
        format!(
            "event: state\ndata: {{\"pools\":[{{\"name\":\"tank\",\"counters\":{{\"reads\":{reads},\"writes\":2,\
             \"read_bytes\":3,\"write_bytes\":4}}}}],\"jobs\":[{{\"state\":\"running\"}},{{\"state\":\"done\"}}]}}\n\n"
        )
        .into_bytes()
    }

    #[test]
    fn unknown_members_of_responses_are_ignored() {
        let seen = ServerSummary::read(POOLS, ALERTS, &live(1)).unwrap();
        let [lake, tank] = &seen.pools[..] else {
            panic!("{seen:?}");
        };
        assert_eq!(
            (lake.name.as_str(), lake.state.as_str()),
            ("lake", "absent")
        );
        assert_eq!((tank.used, tank.seconds_to_full), (4, Some(50)));
        assert_eq!(tank.counted, Some([1, 2, 3, 4]));
        assert_eq!(seen.alerts[0], (Severity::Critical, "ab".to_owned()));
        assert_eq!(seen.alerts[1].0, Severity::Warning);
        assert_eq!((seen.alerts_open, seen.jobs_running), (2, 1));
    }

    #[test]
    fn malformed_responses_are_refused_and_long_ones_truncated() {
        for (pools, alerts, events) in [
            (&b"<html>"[..], ALERTS, live(1)),
            (POOLS, &b""[..], live(1)),
            (POOLS, ALERTS, b"event: other\ndata: {}\n\n".to_vec()),
            (POOLS, ALERTS, b"event: state\n".to_vec()),
            (POOLS, ALERTS, b"event: state\ndata: [".to_vec()),
        ] {
            assert!(ServerSummary::read(pools, alerts, &events).is_err());
        }
        let pool = format!("{{\"name\":\"{}\",\"state\":\"online\"}}", "x".repeat(900));
        let pools = format!("{{\"items\":[{}]}}", vec![pool; 100].join(","));
        let alerts = vec!["{\"message\":\"m\"}"; 50].join(",");
        let alerts = format!("{{\"items\":[{alerts}]}}");
        let seen = ServerSummary::read(pools.as_bytes(), alerts.as_bytes(), &live(1)).unwrap();
        assert_eq!((seen.pools.len(), seen.pools[0].name.len()), (64, 300));
        assert_eq!((seen.alerts.len(), seen.alerts_open), (8, 50));
    }

    #[test]
    fn loads_require_recent_counters() {
        let mut before = Before::default();
        let load = |before: &mut Before, reads: u64, at_s: u64| {
            let seen = ServerSummary::read(POOLS, ALERTS, &live(reads)).unwrap();
            before.note(&seen, Duration::from_secs(at_s));
            let card = seen.card("a", "https://a", before);
            card.pools[1].load.map(|load| load.reads)
        };
        assert_eq!(load(&mut before, 100, 10), None);
        assert_eq!(load(&mut before, 150, 15), Some(10.0));
        // Reopened, then polled after a long time, then soon again.
        assert_eq!(load(&mut before, 20, 20), Some(4.0));
        assert_eq!(load(&mut before, 30, 200), None);
        assert_eq!(load(&mut before, 40, 201), Some(10.0));
    }
}
