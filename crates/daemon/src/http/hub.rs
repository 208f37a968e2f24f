//! One look a second for all viewers, and none while there are none.

use crate::Manager;
use crate::live::{MapView, Picture, Seen, changes};
use api::v1::{Problem, ProblemCode};
use hyper::body::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Viewers at a time, and those of one caller.
pub const VIEWERS_MAX: usize = 64;
const CALLER_VIEWERS_MAX: usize = 16;
/// Maps that are looked at for all viewers together.
const MAPS_MAX: usize = 64;
/// From one look to the next, at least and at most. In between they are as far apart as the last one was long, times
/// [`DUTY`]: looking takes a fiftieth of the time.
const PERIOD_MIN: Duration = Duration::from_secs(1);
const PERIOD_MAX: Duration = Duration::from_secs(10);
const DUTY: u32 = 50;

/// Events that a viewer is told of at a time; the rest comes with the next look.
const EVENTS_MAX: usize = 100;

/// What a viewer wants to be told besides the state.
pub type Wish = Vec<MapView>;

/// What was seen at one look, with what it changed.
#[derive(Default)]
pub struct Tick {
    number: u64,
    seen: Seen,
    before: Seen,
    maps: BTreeMap<MapView, Picture>,
    maps_before: BTreeMap<MapView, Picture>,
    /// The events that tell of it to who was told of the look before, and to others, made once for all of them.
    changed: OnceLock<Bytes>,
    whole: OnceLock<Bytes>,
    maps_changed: BTreeMap<MapView, OnceLock<String>>,
}

#[derive(Default)]
struct Viewers {
    count: usize,
    /// By caller.
    callers: BTreeMap<String, usize>,
    running: bool,
    maps: BTreeMap<MapView, usize>,
}

/// Looks, and tells.
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
    /// The last look that it was told of.
    told: Option<u64>,
    /// The number of the last event that it was told of, or that there was when it came.
    event: u64,
}

fn event(name: &str, data: &impl serde::Serialize) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

impl Tick {
    /// What a viewer is told who was told of all up to the look `told`, with `more` at the end. Most are told the
    /// same, which is not even copied where they look at no map.
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

    /// The event of what changed of a map; empty when nothing did.
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
    /// Nobody looks yet.
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

    /// Takes one more viewer. Looking begins with the first.
    ///
    /// # Errors
    /// When there are too many, or too many maps.
    pub fn join(self: &Arc<Self>, who: &str, wish: Wish) -> Result<Viewing, Problem> {
        let too_many = |what: String| Err(Problem::new(ProblemCode::TooMany, what));
        let mut viewers = self.viewers();
        if viewers.count >= VIEWERS_MAX {
            return too_many(format!(
                "{VIEWERS_MAX} viewers look already: close one, or ask for single answers"
            ));
        }
        if viewers
            .callers
            .get(who)
            .is_some_and(|count| *count >= CALLER_VIEWERS_MAX)
        {
            return too_many(format!(
                "{who} looks {CALLER_VIEWERS_MAX} times already: close one, or ask for single answers"
            ));
        }
        let new = wish.iter().filter(|view| !viewers.maps.contains_key(view));
        if viewers.maps.len() + new.count() > MAPS_MAX {
            return too_many(format!(
                "{MAPS_MAX} maps are looked at already: close one, or look at fewer volumes"
            ));
        }
        viewers.count += 1;
        *viewers.callers.entry(who.to_owned()).or_default() += 1;
        for view in &wish {
            *viewers.maps.entry(view.clone()).or_default() += 1;
        }
        let mut ticks = self.ticks.subscribe();
        match std::mem::replace(&mut viewers.running, true) {
            // The last look is a moment old; the maps come with the next.
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

    /// Goes on while there are viewers.
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
            // A panic in there was reported where it happened; the next look may go better.
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
    /// Waits for the next look, and tells it as events. A viewer who is slow misses looks, and is told all then.
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
