//! Live data: one snapshot per second shared by all viewers, and none without viewers.

use crate::Manager;
use crate::live::{LiveSnapshot, MapView, Picture, changes};
use api::v1::{Problem, ProblemCode};
use hyper::body::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Maximum number of viewers, and of those of one caller.
pub const VIEWERS_MAX: usize = 64;
const CALLER_VIEWERS_MAX: usize = 16;
/// Maximum number of distinct maps of all viewers.
const MAPS_MAX: usize = 64;
/// Minimum and maximum period of updates. In between the period is the duration of the last update
/// times [`DUTY`]: updates take at most 2 % of the time.
const PERIOD_MIN: Duration = Duration::from_secs(1);
const PERIOD_MAX: Duration = Duration::from_secs(10);
const DUTY: u32 = 50;

/// Maximum number of events per update and viewer; the rest follows with the next.
const EVENTS_MAX: usize = 100;

/// Maps that a viewer has requested besides the state.
pub type Wish = Vec<MapView>;

/// An update, with the changes since the previous one.
#[derive(Default)]
pub struct Tick {
    number: u64,
    seen: LiveSnapshot,
    before: LiveSnapshot,
    maps: BTreeMap<MapView, Picture>,
    maps_before: BTreeMap<MapView, Picture>,
    /// Serialised changes for viewers that received the previous update, and the full state for
    /// others, each built once.
    changed: OnceLock<Bytes>,
    whole: OnceLock<Bytes>,
    maps_changed: BTreeMap<MapView, OnceLock<String>>,
}

#[derive(Default)]
struct Viewers {
    count: usize,
    /// Number of viewers by caller.
    callers: BTreeMap<String, usize>,
    running: bool,
    maps: BTreeMap<MapView, usize>,
}

/// Produces updates and distributes them.
pub struct Hub {
    manager: Arc<Manager>,
    viewers: Mutex<Viewers>,
    ticks: watch::Sender<Arc<Tick>>,
}

/// A viewer, until it is dropped.
pub struct Viewing {
    hub: Arc<Hub>,
    who: String,
    wish: Wish,
    ticks: watch::Receiver<Arc<Tick>>,
    /// The last update that it received.
    told: Option<u64>,
    /// Number of the last event that it received, or of the newest when it joined.
    event: u64,
}

fn event(name: &str, data: &impl serde::Serialize) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

impl Tick {
    /// The text for a viewer that has received updates up to `told`, with `more` appended. Most
    /// viewers get the same text, shared without a copy if they watch no map.
    fn text(&self, told: Option<u64>, wish: &Wish, more: &str) -> Bytes {
        let follows = told.is_some_and(|told| told + 1 == self.number);
        let state = match follows {
            true => self.changed().clone(),
            false => self.whole().clone(),
        };
        if wish.is_empty() && more.is_empty() {
            return state;
        }
        let mut text = state.to_vec();
        for view in wish {
            match self.maps_before.contains_key(view) && follows {
                true => text.extend(self.map_changed(view).bytes()),
                false => text.extend(self.map_whole(view).bytes()),
            }
        }
        text.extend(more.bytes());
        text.into()
    }

    fn changed(&self) -> &Bytes {
        self.changed
            .get_or_init(|| event("state", &changes(&self.before, &self.seen)).into())
    }

    fn whole(&self) -> &Bytes {
        self.whole
            .get_or_init(|| event("state", &self.seen.whole()).into())
    }

    /// The event with the changes of a map; empty if there are none.
    fn map_changed(&self, view: &MapView) -> &str {
        let maps = self.maps.get(view).zip(self.maps_before.get(view));
        let make = || {
            let (now, before) = maps?;
            let changes = now.changes(before, view)?;
            Some(event("map", &changes))
        };
        let made = self.maps_changed.get(view);
        made.map_or("", |made| made.get_or_init(|| make().unwrap_or_default()))
    }

    fn map_whole(&self, view: &MapView) -> String {
        let map = self.maps.get(view).map(|map| map.whole(view));
        map.map_or_else(String::new, |map| event("map", &map))
    }
}

impl Hub {
    /// A hub without viewers.
    pub fn new(manager: &Arc<Manager>) -> Arc<Self> {
        Arc::new(Self {
            manager: Arc::clone(manager),
            viewers: Mutex::default(),
            ticks: watch::Sender::default(),
        })
    }

    fn viewers(&self) -> MutexGuard<'_, Viewers> {
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a viewer. The first one starts the updates.
    ///
    /// # Errors
    /// When there are too many viewers or maps.
    pub fn join(self: &Arc<Self>, who: &str, wish: Wish) -> Result<Viewing, Problem> {
        let too_many = |what: String| Err(Problem::new(ProblemCode::TooMany, what));
        let mut viewers = self.viewers();
        if viewers.count >= VIEWERS_MAX {
            return too_many(format!(
                "the limit of {VIEWERS_MAX} viewers is reached: close one, or use single requests"
            ));
        }
        if viewers
            .callers
            .get(who)
            .is_some_and(|count| *count >= CALLER_VIEWERS_MAX)
        {
            return too_many(format!(
                "{who} has reached the limit of {CALLER_VIEWERS_MAX} viewers: close one, or use \
                 single requests"
            ));
        }
        let new = wish.iter().filter(|view| !viewers.maps.contains_key(view));
        if viewers.maps.len() + new.count() > MAPS_MAX {
            return too_many(format!(
                "the limit of {MAPS_MAX} live maps is reached: close one, or watch fewer volumes"
            ));
        }
        viewers.count += 1;
        *viewers.callers.entry(who.to_owned()).or_default() += 1;
        for view in &wish {
            *viewers.maps.entry(view.clone()).or_default() += 1;
        }
        let mut ticks = self.ticks.subscribe();
        match std::mem::replace(&mut viewers.running, true) {
            // The last update is recent; maps follow with the next.
            true if ticks.borrow().number > 0 => ticks.mark_changed(),
            true => {}
            false => drop(tokio::spawn(Arc::clone(self).look())),
        }
        Ok(Viewing {
            hub: Arc::clone(self),
            who: who.to_owned(),
            wish,
            ticks,
            told: None,
            event: self.manager.notifications.events().newest(),
        })
    }

    /// Runs while there are viewers.
    async fn look(self: Arc<Self>) {
        let mut seen_number = 0;
        loop {
            let views: Vec<MapView> = {
                let mut viewers = self.viewers();
                if viewers.count == 0 {
                    viewers.running = false;
                    return;
                }
                viewers.maps.keys().cloned().collect()
            };
            let began = Instant::now();
            let manager = Arc::clone(&self.manager);
            let work = move || {
                let (number, took, seen) = manager.live.next(seen_number);
                let began = Instant::now();
                let maps = manager.live.maps(&views);
                (number, took + began.elapsed(), seen, maps)
            };
            let mut took = PERIOD_MIN;
            // A panic was reported already; the next update may succeed.
            if let Ok((number, worked, seen, maps)) = tokio::task::spawn_blocking(work).await {
                (seen_number, took) = (number, worked);
                self.ticks.send_modify(|tick| {
                    let views = maps.keys().cloned();
                    *tick = Arc::new(Tick {
                        number: tick.number + 1,
                        before: tick.seen.clone(),
                        maps_before: tick.maps.clone(),
                        seen,
                        maps_changed: views.map(|view| (view, OnceLock::new())).collect(),
                        maps,
                        changed: OnceLock::new(),
                        whole: OnceLock::new(),
                    });
                });
            }
            let period = (took * DUTY).clamp(PERIOD_MIN, PERIOD_MAX);
            tokio::time::sleep(period.saturating_sub(began.elapsed())).await;
        }
    }
}

impl Viewing {
    /// Waits for the next update and returns it as events. A slow viewer skips updates and gets the
    /// full state.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.ticks.changed().await.ok()?;
        let tick = Arc::clone(&self.ticks.borrow_and_update());
        let mut more = String::new();
        for new in self
            .hub
            .manager
            .notifications
            .events()
            .after(self.event, EVENTS_MAX)
            .events
        {
            self.event = new.number;
            more.push_str(&event("event", &new));
        }
        let text = tick.text(self.told, &self.wish, &more);
        self.told = Some(tick.number);
        Some(text)
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        let mut viewers = self.hub.viewers();
        viewers.count -= 1;
        if let Some(count) = viewers.callers.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                viewers.callers.remove(&self.who);
            }
        }
        for view in &self.wish {
            if let Some(count) = viewers.maps.get_mut(view) {
                *count -= 1;
                if *count == 0 {
                    viewers.maps.remove(view);
                }
            }
        }
    }
}
