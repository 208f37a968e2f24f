//! The other daemons, and their last responses.

use super::seen::{Before, ServerSummary};
use crate::clock::now_s;
use crate::state::{JsonStore, StateFiles};
use crate::sync::lock;
use api::v1::{Problem, ProblemCode, Server, ServerCreate, ServerState};
use remote::{Address, Bounds, Pin, Trust};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The file in the state folder, which contains tokens, and its maximum size in bytes.
const FILE: &str = "servers.json";
const FILE_MAX: u64 = 16 << 20;
/// Maximum number of servers; each is polled on a thread of its own.
const SERVERS_MAX: usize = 16;
/// Maximum size of a server's CA certificates, in bytes.
const CA_MAX: usize = 256 << 10;
/// Minimum interval of polls; and after a failure, since an invalid token must not be sent often.
const CALM: Duration = Duration::from_secs(4);
const CALM_AFTER_ERROR: Duration = Duration::from_secs(30);
/// Limits of its responses.
const BOUNDS: Bounds = Bounds {
    bytes: 4 << 20,
    time: Duration::from_secs(15),
};

type Result<T> = std::result::Result<T, Problem>;

/// The stored form.
#[derive(Serialize, Deserialize)]
struct StoredServers {
    servers: Vec<ServerCreate>,
}

struct ServerEntry {
    create: ServerCreate,
    way: Arc<remote::Server>,
    /// Its last response, and the time: seconds since 1970.
    seen: Option<(ServerSummary, u64)>,
    loads: Before,
    /// Why the last poll failed.
    error: Option<String>,
    asked: Option<Instant>,
    /// A poll is in progress.
    busy: bool,
    /// Distinguishes servers of the same name over time.
    generation: u64,
}

#[derive(Default)]
struct All {
    known: BTreeMap<String, ServerEntry>,
    generations: u64,
    /// Loads of this daemon.
    own: Before,
}

/// The servers. Locked briefly, never during a poll.
pub struct Servers {
    store: JsonStore<StoredServers>,
    began: Instant,
    all: Arc<Mutex<All>>,
}

/// A client of a server; nothing is sent.
fn way(create: &ServerCreate) -> std::result::Result<remote::Server, String> {
    let name = &create.name;
    if !remote::is_token(create.token.expose()) {
        return Err(format!(
            "the token for {name} is malformed: store the output of `convect token create` there, \
             and nothing else"
        ));
    }
    let address = Address::parse(&create.url).map_err(|error| error.to_string())?;
    let token = create.token.expose().to_owned();
    let made = match (&create.pin, &create.ca) {
        (Some(pin), None) => {
            Pin::parse(pin).and_then(|pin| remote::Server::new(address, &Trust::Pin(pin), token))
        }
        (None, Some(ca)) if ca.len() > CA_MAX => {
            return Err(format!("the certificates of {name} exceed {CA_MAX} bytes"));
        }
        (None, Some(ca)) => remote::Server::signed_by(address, ca, token),
        _ => {
            return Err(format!(
                "the certificate of {name} needs exactly one of pin and ca: give one"
            ));
        }
    };
    made.map_err(|error| error.to_string())
}

/// Polls a server.
fn ask(way: &remote::Server) -> std::result::Result<ServerSummary, String> {
    let look = |target: &str| way.look(target, BOUNDS).map_err(|error| error.to_string());
    let pools = look("/v1/pools")?;
    let alerts = look("/v1/alerts")?;
    let live = look("/v1/live?looks=1")?;
    let bad = |why: String| {
        format!(
            "{}: {why}: check that it has a compatible version",
            way.address()
        )
    };
    ServerSummary::read(&pools, &alerts, &live).map_err(bad)
}

impl ServerEntry {
    fn card(&self) -> Server {
        let (name, url) = (&self.create.name, self.way.address().to_string());
        let empty = ServerSummary::default();
        let (seen, answered_s) = match &self.seen {
            Some((seen, at_s)) => (seen, Some(*at_s)),
            None => (&empty, None),
        };
        Server {
            pin: self.create.pin.clone(),
            state: match (&self.error, answered_s) {
                (Some(_), _) => ServerState::Unreachable,
                (None, Some(_)) => ServerState::Online,
                (None, None) => ServerState::Asking,
            },
            error: self.error.clone(),
            answered_s,
            ..seen.card(name, &url, &self.loads)
        }
    }
}

impl All {
    fn add(&mut self, create: ServerCreate, way: remote::Server) {
        self.generations += 1;
        let known = ServerEntry {
            way: Arc::new(way),
            seen: None,
            loads: Before::default(),
            error: None,
            asked: None,
            busy: false,
            generation: self.generations,
            create,
        };
        self.known.insert(known.create.name.clone(), known);
    }

    fn kept(&self) -> StoredServers {
        let all = self.known.values().map(|known| known.create.clone());
        StoredServers {
            servers: all.collect(),
        }
    }
}

impl Servers {
    /// Servers of a state folder, not loaded yet.
    pub fn new(files: &StateFiles) -> Self {
        Self {
            store: JsonStore::new(files, FILE, FILE_MAX, 0o600),
            began: Instant::now(),
            all: Arc::default(),
        }
    }

    /// Loads the servers.
    pub fn load(&self) {
        let read = self.store.read_checked(|kept| {
            let servers = kept.servers.into_iter().take(SERVERS_MAX);
            let ways = servers.map(|create| Ok((way(&create)?, create)));
            ways.collect::<std::result::Result<Vec<_>, String>>()
        });
        let mut all = lock(&self.all);
        for (way, create) in read.unwrap_or_default() {
            all.add(create, way);
        }
    }

    /// Adds a server. It is not polled before a client views the list.
    ///
    /// # Errors
    /// When it is invalid, its name is taken, or it cannot be stored.
    pub fn create(&self, create: ServerCreate) -> Result<Server> {
        let way = way(&create).map_err(Problem::invalid)?;
        let mut all = lock(&self.all);
        let name = create.name.clone();
        if all.known.contains_key(&name) {
            let text = format!("server {name} already exists: remove it, or choose another name");
            return Err(Problem::new(ProblemCode::Exists, text));
        }
        if all.known.len() >= SERVERS_MAX {
            let text = format!("the limit of {SERVERS_MAX} servers is reached: remove one");
            return Err(Problem::new(ProblemCode::TooMany, text));
        }
        let mut kept = all.kept();
        kept.servers.push(create.clone());
        self.store.write_for_caller("the servers", &kept)?;
        all.add(create, way);
        Ok(all.known[&name].card())
    }

    /// Removes a server and its token.
    ///
    /// # Errors
    /// When it does not exist, or the change cannot be stored.
    pub fn remove(&self, name: &str) -> Result<()> {
        let mut all = lock(&self.all);
        if !all.known.contains_key(name) {
            let text = format!("unknown server {name}: see `convect server list`");
            return Err(Problem::not_found(text));
        }
        let mut kept = all.kept();
        kept.servers.retain(|known| known.name != name);
        self.store.write_for_caller("the servers", &kept)?;
        all.known.remove(name);
        Ok(())
    }

    /// The known state of the other daemons, by name. Outdated ones are polled, each on a thread,
    /// and their responses appear in the next list.
    pub fn list(&self) -> Vec<Server> {
        let mut all = lock(&self.all);
        for known in all.known.values_mut() {
            let calm = match known.error {
                Some(_) => CALM_AFTER_ERROR,
                None => CALM,
            };
            let due = known.asked.is_none_or(|asked| asked.elapsed() >= calm);
            if due && !known.busy {
                known.busy = true;
                known.asked = Some(Instant::now());
                self.begin(known);
            }
        }
        all.known.values().map(ServerEntry::card).collect()
    }

    fn begin(&self, known: &mut ServerEntry) {
        let (way, all, began) = (Arc::clone(&known.way), Arc::clone(&self.all), self.began);
        let (name, generation) = (known.create.name.clone(), known.generation);
        let work = move || {
            let answer = ask(&way);
            let mut all = lock(&all);
            let found = all.known.get_mut(&name);
            if let Some(known) = found.filter(|known| known.generation == generation) {
                known.busy = false;
                match answer {
                    Ok(seen) => {
                        known.loads.note(&seen, began.elapsed());
                        known.seen = Some((seen, now_s()));
                        known.error = None;
                    }
                    Err(why) => known.error = Some(why),
                }
            }
        };
        let thread = std::thread::Builder::new().name("server".to_owned());
        if let Err(error) = thread.spawn(work) {
            known.busy = false;
            known.error = Some(format!("cannot poll it: {error}"));
        }
    }

    /// This daemon's state as a card, with the load since the previous call.
    pub fn own(&self, seen: &ServerSummary) -> Server {
        let mut all = lock(&self.all);
        all.own.note(seen, self.began.elapsed());
        Server {
            answered_s: Some(now_s()),
            ..seen.card("", "", &all.own)
        }
    }
}
