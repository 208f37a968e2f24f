//! The manager itself, drives and jobs.

use super::exports::Running;
use super::fills::Gauges;
use super::looks::Looks;
use super::observe::Observed;
use super::playback::Playback;
use super::pools::Absent;
use super::promises::Bottlenecks;
use super::request_memory::RequestMemory;
use super::schedules::{Key, Tried};
use super::smart::Smart;
use super::uses::Uses;
use super::wear::Watched;
use crate::access::Access;
use crate::admission::Peak;
use crate::clock::now_s;
use crate::delivery::Targets;
use crate::events::Events;
use crate::history::Store;
use crate::jobs::Ledger;
use crate::mapping::ToApi;
use crate::ram::ALL;
use crate::servers::Servers;
use crate::{Control, RamPlan, RemotePaths, ScrubSchedule, StateDir};
use api::v1::{self, Problem, ProblemCode};
use reactor::FrontEnd;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) type Result<T> = std::result::Result<T, Problem>;

/// Longest name of a pool, volume or export, in bytes.
const NAME_MAX: usize = 64;

/// The pools, volumes and exports of one daemon. Every call may block.
pub struct Manager {
    pub(super) control: Arc<dyn Control>,
    pub(super) front_ends: &'static [FrontEnd],
    pub(super) state: StateDir,
    pub(super) sys_block: PathBuf,
    pub(super) scrubs: ScrubSchedule,
    pub(super) ram: RamPlan,
    /// Thousandths of their RAM tiers that pools may use. Locked before anything is asked of the engine.
    pub(super) ram_share: Mutex<u64>,
    pub(super) request_memory: RequestMemory,
    /// Held by whatever changes which pools are open or what is exported, from its first check to
    /// its last step.
    pub(super) changes: Mutex<()>,
    /// Set before the engine ends: what is seen of pools from then on is no state of theirs.
    pub(super) ended: AtomicBool,
    /// By pool and name. Locked for a look or a push only, after `changes`.
    pub(super) exports: Mutex<BTreeMap<(String, String), Running>>,
    /// Pools that should be open and are not. Locked as `exports` is.
    pub(super) absent: Mutex<Vec<Absent>>,
    /// What became of schedules' last tries. Locked for a look or an entry only.
    pub(super) tried: Mutex<BTreeMap<Key, Tried>>,
    /// How pools filled since the daemon was started. Locked for a look or an entry only.
    pub(super) gauges: Mutex<Gauges>,
    /// What was written to drives when they were seen first. Locked as `gauges` is.
    pub(super) wear: Mutex<Watched>,
    /// The maps of volumes as they were.
    pub(super) playback: Playback,
    /// What is being sent or received.
    pub(super) uses: Uses,
    pub(super) looks: Looks,
    pub(super) smart: Smart,
    pub(super) began: Instant,
    pub(super) access: Access,
    /// Number of the entry of the log of changes that pools keep as its end.
    pub(super) anchored: Mutex<u64>,
    pub(super) events: Events,
    pub(super) targets: Targets,
    /// The targets of the configuration.
    pub(super) configured_targets: Vec<v1::TargetCreate>,
    pub(super) servers: Servers,
    pub(super) history: Store,
    pub(super) jobs: Ledger,
    /// When it was made: seconds since 1970.
    pub(super) made_s: u64,
    /// What was seen at the last look. Held while it is looked.
    pub(super) observed: Mutex<Observed>,
    /// What drives of tiers did in the second in which they did most since their pool was opened, by their objects of the
    /// history. Locked to read it and to add a second.
    pub(super) peaks: Mutex<BTreeMap<String, Peak>>,
    /// Where operations of volumes with policies spent their time, as the last look saw it. Locked to read and to set it.
    pub(super) bottlenecks: Mutex<Bottlenecks>,
    /// Per cent of its size that may be written to a drive of the fast tier in a day; 0: as much as comes.
    pub(super) flash_daily_percent: u32,
    /// Whether alerts also go to link-local addresses.
    pub(crate) alerts_link_local: bool,
    /// Where callers by the network may name paths.
    pub(super) remote_paths: RemotePaths,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn check_name(what: &str, name: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() <= NAME_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(good)
    {
        return Ok(());
    }
    Err(Problem::new(
        ProblemCode::Invalid,
        format!(
            "'{}' cannot be the name of {what}: use at most {NAME_MAX} letters, digits, '-', '_' \
             and '.', a letter first",
            name.escape_debug()
        ),
    ))
}

impl Manager {
    /// A manager with nothing open; [`Manager::start`] opens what was.
    pub fn new(
        control: Arc<dyn Control>,
        front_ends: &'static [FrontEnd],
        state: StateDir,
    ) -> Self {
        let files = state.files().clone();
        Self {
            control,
            front_ends,
            access: Access::new(&files),
            events: Events::new(&files),
            targets: Targets::new(&files),
            servers: Servers::new(&files),
            history: Store::new(&files),
            jobs: Ledger::new(&files),
            made_s: now_s(),
            configured_targets: Vec::new(),
            observed: Mutex::default(),
            peaks: Mutex::default(),
            bottlenecks: Mutex::default(),
            flash_daily_percent: 0,
            anchored: Mutex::default(),
            remote_paths: RemotePaths::default(),
            alerts_link_local: false,
            state,
            sys_block: "/sys/block".into(),
            scrubs: ScrubSchedule::default(),
            ram: RamPlan::default(),
            ram_share: Mutex::new(ALL),
            request_memory: RequestMemory::new(crate::config::REQUEST_MEMORY),
            changes: Mutex::default(),
            ended: AtomicBool::new(false),
            exports: Mutex::default(),
            absent: Mutex::default(),
            tried: Mutex::default(),
            gauges: Mutex::default(),
            wear: Mutex::default(),
            playback: Playback::default(),
            uses: Uses::default(),
            looks: Looks::default(),
            smart: Smart::default(),
            began: Instant::now(),
        }
    }

    /// The same, with scrubs by this schedule.
    #[must_use]
    pub fn with_scrubs(self, scrubs: ScrubSchedule) -> Self {
        Self { scrubs, ..self }
    }

    /// The same, with RAM tiers of these sizes.
    #[must_use]
    pub fn with_ram(self, ram: RamPlan) -> Self {
        Self { ram, ..self }
    }

    /// The same, whose hosts' requests and unread answers take at most so many bytes.
    #[must_use]
    pub fn with_request_memory(self, bytes: u64) -> Self {
        let request_memory = RequestMemory::new(bytes);
        Self {
            request_memory,
            ..self
        }
    }

    /// The same, which warns when more than so many per cent of its size are written to a drive of the fast tier in a
    /// day; never with 0.
    #[must_use]
    pub fn with_flash_limit(self, flash_daily_percent: u32) -> Self {
        Self {
            flash_daily_percent,
            ..self
        }
    }

    /// The same, which tells these targets of events besides those that are made.
    #[must_use]
    pub fn with_targets(self, configured_targets: Vec<v1::TargetCreate>) -> Self {
        Self {
            configured_targets,
            ..self
        }
    }

    /// The same, with these folders for paths that callers by the network name.
    #[must_use]
    pub fn with_remote_paths(self, remote_paths: RemotePaths) -> Self {
        Self {
            remote_paths,
            ..self
        }
    }

    /// The same, which sends alerts also to link-local addresses.
    #[must_use]
    pub fn with_alerts_link_local(self, alerts_link_local: bool) -> Self {
        Self {
            alerts_link_local,
            ..self
        }
    }

    /// How long it is since it was made.
    pub fn up(&self) -> Duration {
        self.began.elapsed()
    }

    /// Who may do what.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Makes a token.
    ///
    /// # Errors
    /// When the name cannot be or is taken, or it cannot be kept.
    pub fn token_create(&self, request: &v1::TokenCreate) -> Result<v1::TokenMade> {
        check_name("a token", &request.name)?;
        self.access.token_create(request)
    }

    /// Whether the engine ends or has ended. Asked after the engine was, this says whether the answer
    /// can be one of an engine without its pools.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Ends the exports, then the engine. What still runs beside it changes nothing that is kept.
    pub fn stop(&self) {
        // A job that ended since the last look would be told of as one that the end broke off.
        if let Err(problem) = self.look_at_jobs() {
            tracing::error!("the jobs cannot be looked at: {problem}");
        }
        self.keep_anchors();
        let _changes = lock(&self.changes);
        self.ended.store(true, Ordering::SeqCst);
        let ended = std::mem::take(&mut *lock(&self.exports));
        drop(ended);
        self.control.shutdown();
        self.note_stop(now_s());
    }

    /// The front ends.
    pub fn frontend_list(&self) -> v1::FrontEndList {
        let items = self.front_ends.iter().map(|row| v1::FrontEnd {
            name: row.name.to_owned(),
            about: row.about.to_owned(),
            parameters: row
                .parameters
                .iter()
                .map(|parameter| v1::Parameter {
                    name: parameter.name.to_owned(),
                    about: parameter.about.to_owned(),
                    required: parameter.required,
                })
                .collect(),
        });
        v1::FrontEndList {
            items: items.collect(),
        }
    }

    /// Looks at one drive.
    ///
    /// # Errors
    /// As the engine's.
    pub fn drive_probe(&self, spec: &str) -> Result<v1::DriveReport> {
        let found = self.control.drive_probe(spec);
        let mut report: v1::DriveReport = found.map_err(ToApi::to_api)?.to_api();
        report.health = self.health(&report.spec);
        if let Some(name) = &report.pool {
            let pool = self.control.pool_status(name).map_err(ToApi::to_api)?;
            let mut drives = pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
            let drive = drives.find(|drive| drive.spec == report.spec);
            report.wear = drive.map(|drive| self.wear(&pool.id, drive));
        }
        Ok(report)
    }

    /// The drives of the open pools and the block devices of this host.
    ///
    /// # Errors
    /// As the engine's.
    pub fn drive_list(&self) -> Result<v1::DriveList> {
        let mut items = Vec::new();
        for pool in self.control.pool_list().map_err(ToApi::to_api)? {
            let drives = pool.vdrives.into_iter().flat_map(|vdrive| vdrive.drives);
            items.extend(drives.map(|drive| v1::DriveReport {
                wear: Some(self.wear(&pool.id, &drive)),
                ..self.look(&drive.spec, drive.size, Some(&pool.name))
            }));
        }
        for (device, size) in crate::host_drives::block_devices(&self.sys_block) {
            let spec = format!("file:/dev/{device}");
            if items.iter().all(|known| known.spec != spec) {
                items.push(self.look(&spec, size, None));
            }
        }
        Ok(v1::DriveList { items })
    }

    fn look(&self, spec: &str, size: u64, pool: Option<&str>) -> v1::DriveReport {
        let found = self.control.drive_probe(spec);
        let found = found.map(ToApi::to_api);
        let mut report = found.unwrap_or_else(|problem| v1::DriveReport {
            spec: spec.to_owned(),
            size,
            logical_sector: 0,
            physical_sector: 0,
            rotation: "unknown".to_owned(),
            write_cache: false,
            found: None,
            pool: pool.map(str::to_owned),
            wear: None,
            health: None,
            error: Some(problem.message),
        });
        report.health = self.health(spec);
        report
    }
}
