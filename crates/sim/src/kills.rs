//! The engine is killed: at any step of what it writes to drives and to the memory that outlives it, in the middle of
//! openings too. Meanwhile the drives may be restored to an earlier state, or copies of them opened.

use crate::client::USUAL;
use crate::lives::End;
use crate::medium::Medium;
use crate::oracle::{Oracle, Wrong};
use crate::random::Random;
use crate::run::{POOL, Run, Step, Watch};
use block::HostMemory;
use engine::{ImportOptions, MissingDrives};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// By which the numbers of copies of drives differ from those of the drives.
const COPIES: u64 = 1000;

type Hook = Rc<dyn Fn()>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Memory that outlives engines, each step of which the run that continues on this thread may examine.
pub fn memory() -> Arc<HostMemory> {
    Arc::new(HostMemory::that_tells(|| {
        let hook = HOOK.with_borrow(Option::clone);
        if let Some(hook) = hook {
            hook();
        }
    }))
}

/// The state after a kill.
pub struct Killed {
    contents: Vec<Medium>,
    memory: Option<HostMemory>,
    oracle: Oracle,
}

/// A kill that is to come, and what it left.
pub struct Kills {
    /// Writes and flushes of drives, and steps of the memory, until it comes; never at 0.
    to_go: Cell<u64>,
    left: RefCell<Option<Killed>>,
    /// The drives' content differs from the hosts' view: crashes are not examined.
    blind: Cell<bool>,
    /// The host's memory of this life.
    memory: RefCell<Option<Arc<HostMemory>>>,
    /// By chances of its own.
    random: RefCell<Random>,
}

impl Kills {
    /// None comes.
    pub fn new(seed: u64) -> Self {
        Self {
            to_go: Cell::new(0),
            left: RefCell::default(),
            blind: Cell::new(false),
            memory: RefCell::default(),
            random: RefCell::new(Random::new(seed.rotate_left(50))),
        }
    }
}

impl Watch {
    /// A life begins with this memory; its steps count.
    pub fn watch_memory(self: &Rc<Self>, memory: Option<&Arc<HostMemory>>) {
        *self.kills.memory.borrow_mut() = memory.cloned();
        let watch = self.clone();
        HOOK.with_borrow_mut(|hook| *hook = Some(Rc::new(move || watch.count_kill())));
    }

    /// The run is over.
    pub fn unwatch_memory(&self) {
        HOOK.with_borrow_mut(|hook| *hook = None);
    }

    /// Whether a crash now would leave what is no concern of hosts.
    pub fn is_blind(&self) -> bool {
        self.kills.blind.get()
    }

    /// Enables or disables the examination of crashes.
    pub fn see_crashes(&self, seen: bool) {
        self.kills.blind.set(!seen);
    }

    fn kill_after(&self, steps: u64) {
        self.kills.to_go.set(steps);
    }

    pub fn take_killed(&self) -> Option<Killed> {
        self.kills.to_go.set(0);
        self.kills.left.take()
    }

    /// Something is written.
    pub fn count_kill(&self) {
        let to_go = self.kills.to_go.get();
        self.kills.to_go.set(to_go.saturating_sub(1));
        if to_go == 1 {
            let killed = self.killed_now();
            self.kills.left.replace(Some(killed));
        }
    }

    /// The state after a kill now.
    fn killed_now(&self) -> Killed {
        let drives = self.drives.borrow();
        let mut random = self.kills.random.borrow_mut();
        let contents = drives.iter().map(|drive| drive.killed(&mut random));
        let memory = self.kills.memory.borrow();
        Killed {
            contents: contents.collect(),
            memory: memory.as_ref().map(|memory| memory.image()),
            oracle: self.client.oracle.borrow().clone(),
        }
    }

    fn chance(&self, one_in: u64) -> bool {
        self.kills.random.borrow_mut().one_in(one_in)
    }

    fn within(&self, range: std::ops::RangeInclusive<u64>) -> u64 {
        self.kills.random.borrow_mut().within(range)
    }
}

impl Run {
    /// The engine ends, in whatever it does, and begins again over drives that continue.
    pub fn kill(&mut self) -> Step {
        if !self.may_be_killed() {
            return self.cut_power();
        }
        let lasts = self.memory.is_some();
        let healthy = self.plan.faulty.or(self.plan.bad).is_none();
        let whole = self.absent.is_none() && self.returned.is_none() && self.away.is_none();
        let calm = healthy && whole;
        if lasts && calm && self.watch.chance(4) {
            return self.put_back();
        }
        let mut killed = None;
        if lasts && self.watch.chance(2) {
            self.watch.kill_after(self.watch.within(1..=300));
            self.load_for(20..=400, USUAL)?;
            killed = self.watch.take_killed();
        }
        let killed = killed.unwrap_or_else(|| self.watch.killed_now());
        if lasts && calm && self.watch.chance(4) {
            return self.open_copies(killed);
        }
        self.go_on_killed(killed)
    }

    /// The next life after a kill.
    fn go_on_killed(&mut self, killed: Killed) -> Step {
        self.begin_after(End::Killed(killed))
    }

    pub fn begin_after_kill(&mut self, killed: Killed) {
        self.client.oracle.borrow_mut().killed_at(killed.oracle);
        self.memory = killed.memory.map(Arc::new);
        self.watch.kills.blind.set(false);
        self.go_on(killed.contents);
    }

    /// The engine is killed in the middle of the opening that follows, if that is `wanted`, or perhaps if it was killed just before.
    pub fn kill_while_opening(&mut self, killed: bool, wanted: bool) {
        if wanted || killed && self.memory.is_some() && self.watch.chance(2) {
            self.watch.kill_after(self.watch.within(1..=80));
        }
    }

    /// Whether an engine may end and begin again over drives that continue: the failure of a flush is no longer known then,
    /// and what it abandoned seems to be there.
    pub fn may_be_killed(&self) -> bool {
        let forgotten = self.plan.faulty.or(self.plan.bad);
        forgotten.is_none_or(|(_, faults)| faults.flush_error == 0)
    }

    /// Tails of openings that no label names are gone after an opening.
    pub fn is_bounded(&self) -> Step {
        let Some(memory) = self.memory.as_ref().filter(|_| !self.lost) else {
            return Ok(());
        };
        let (kept, shards) = (memory.all().len(), self.plan.shards());
        match kept <= shards {
            true => Ok(()),
            false => Err(Wrong(format!(
                "{kept} tails of {shards} shards are kept after an opening"
            ))),
        }
    }

    /// The drives are put back to what they held before a load that was flushed; then the right ones come.
    fn put_back(&mut self) -> Step {
        let before = self.watch.killed_now();
        self.load_for(50..=300, USUAL)?;
        self.drain()?;
        for (_, number) in self.volumes.clone() {
            self.client.flush(number);
        }
        self.drain()?;
        let killed = self.watch.killed_now();
        let changed = killed.oracle.written_since(&before.oracle);
        self.pull_the_plug();
        let memory = killed
            .memory
            .as_ref()
            .map(|memory| Arc::new(memory.image()));
        self.memory = memory;
        self.watch.kills.blind.set(true);
        self.go_on(before.contents);
        self.fault(false);
        let opened = self.engine().pool_import(&self.present(), POOL, false);
        if changed && opened.is_ok() {
            return Err(Wrong(
                "drives that were put back behind a killed engine open as if nothing were lost"
                    .into(),
            ));
        }
        if opened.is_err() {
            let options = ImportOptions {
                missing: MissingDrives::Refuse,
                accept_old: true,
                ..ImportOptions::default()
            };
            let accepted = self.engine().pool_import(&self.present(), POOL, options);
            accepted.map_err(|failed| Wrong(format!("what is old is not accepted: {failed}")))?;
        }
        self.go_on_killed(killed)
    }

    /// Copies of the drives are opened first, and closed.
    fn open_copies(&mut self, killed: Killed) -> Step {
        self.pull_the_plug();
        let memory = killed.memory.map(Arc::new);
        self.memory = memory.clone();
        self.first_number = COPIES;
        self.watch.kills.blind.set(true);
        self.go_on(killed.contents.clone());
        self.fault(false);
        let engine = self.engine();
        let opened = engine.pool_import(&self.present(), POOL, false);
        let closed = opened.and_then(|_| engine.pool_export(POOL));
        closed.map_err(|failed| Wrong(format!("a copy does not open, or close: {failed}")))?;
        self.first_number = 0;
        let memory = memory.map(|memory| memory.image());
        self.go_on_killed(Killed { memory, ..killed })
    }
}
