//! The composition root: the parts, their dependencies, and the order of start and stop.

use super::anchors::AuditAnchors;
use super::diagnostics::Diagnostics;
use super::drives::Drives;
use super::exports::{Exports, RequestMemory};
use super::fills::FillMonitor;
use super::fleet::Fleet;
use super::health::{DriveHealthMonitor, SmartConfig};
use super::history::History;
use super::jobs::Jobs;
use super::live::LiveStatus;
use super::metrics::MetricsSource;
use super::notifications::Notifications;
use super::observe::{Observables, Observer};
use super::playback::Playback;
use super::pools::Pools;
use super::promises::QosBottlenecks;
use super::qos::Qos;
use super::ram::RamTiers;
use super::registry::PoolRegistry;
use super::schedules::Schedules;
use super::snapshots::Snapshots;
use super::status_cache::StatusCache;
use super::transfers::Transfers;
use super::uses::Uses;
use super::volumes::Volumes;
use super::wear::WearMonitor;
use super::why::WhySlow;
use crate::access::Access;
use crate::clock::now_s;
use crate::config::REQUEST_MEMORY;
use crate::control::PoolCalls;
use crate::{Control, RamPlan, RemotePaths, ScrubSchedule, ServeError, StateDir};
use api::v1;
use reactor::FrontEnd;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Where the kernel lists block devices.
const SYS_BLOCK: &str = "/sys/block";

/// Configuration of the manager.
#[derive(Clone, Debug)]
pub struct ManagerConfig {
    /// Schedule of automatic scrubs.
    pub scrubs: ScrubSchedule,
    /// Sizes of RAM tiers.
    pub ram: RamPlan,
    /// Memory for hosts' requests and unread responses, in bytes.
    pub request_memory: u64,
    /// Share of a fast-tier drive's size in percent whose daily writes raise a warning; 0: never.
    pub flash_daily_percent: u32,
    /// Configured notification targets.
    pub targets: Vec<v1::TargetCreate>,
    /// Whether notifications may be sent to link-local addresses.
    pub alerts_link_local: bool,
    /// Folders in which remote callers may name paths.
    pub remote_paths: RemotePaths,
    /// Source of drive health.
    pub smart: SmartConfig,
}

impl Default for ManagerConfig {
    fn default() -> Self {
        Self {
            scrubs: ScrubSchedule::default(),
            ram: RamPlan::default(),
            request_memory: REQUEST_MEMORY,
            flash_daily_percent: 0,
            targets: Vec::new(),
            alerts_link_local: false,
            remote_paths: RemotePaths::default(),
            smart: SmartConfig::default(),
        }
    }
}

/// The parts of one daemon. Their calls may block.
#[expect(missing_docs, reason = "each part says at its head what it is")]
pub struct Manager {
    pub access: Arc<Access>,
    pub anchors: Arc<AuditAnchors>,
    pub diagnostics: Arc<Diagnostics>,
    pub drives: Drives,
    pub exports: Arc<Exports>,
    pub fills: Arc<FillMonitor>,
    pub fleet: Fleet,
    pub health: Arc<DriveHealthMonitor>,
    pub history: Arc<History>,
    pub jobs: Arc<Jobs>,
    pub live: LiveStatus,
    pub metrics: MetricsSource,
    pub notifications: Arc<Notifications>,
    pub observer: Observer,
    pub playback: Playback,
    pub pools: Arc<Pools>,
    pub qos: Qos,
    pub ram: RamTiers,
    pub registry: Arc<PoolRegistry>,
    pub schedules: Arc<Schedules>,
    pub snapshots: Snapshots,
    pub transfers: Arc<Transfers>,
    pub volumes: Arc<Volumes>,
    pub wear: Arc<WearMonitor>,
    pub why: WhySlow,
}

impl Manager {
    /// A manager without open pools; [`Manager::start`] opens those that were open before.
    pub fn new(
        control: Arc<dyn Control>,
        front_ends: &'static [FrontEnd],
        state: StateDir,
        config: ManagerConfig,
    ) -> Self {
        let began = Instant::now();
        let files = &state.files().clone();
        let sys_block = Path::new(SYS_BLOCK);
        let control = &control;
        let access = Arc::new(Access::new(files));
        let anchors = Arc::new(AuditAnchors::new(control, &access));
        let registry = Arc::new(PoolRegistry::new(Arc::clone(control), state));
        let status = Arc::new(StatusCache::new(control));
        let jobs = Arc::new(Jobs::new(&registry, files));
        let uses = Uses::default();
        let memory = RequestMemory::new(config.request_memory);
        let exports = Exports::new(&registry, front_ends, memory, config.remote_paths, &uses);
        let exports = Arc::new(exports);
        let fills = Arc::new(FillMonitor::new(control, &exports, began));
        let wear = Arc::new(WearMonitor::new(control, began));
        let health = Arc::new(DriveHealthMonitor::new(control, sys_block, config.smart));
        let history = Arc::new(History::new(control, &exports, files));
        let bottlenecks = Arc::new(QosBottlenecks::default());
        let volumes = Arc::new(Volumes::new(&registry, &exports, &jobs, &bottlenecks));
        let schedules = Arc::new(Schedules::new(&registry, &exports, began));
        let notifications = Notifications::new(files, config.targets, config.alerts_link_local);
        let notifications = Arc::new(notifications);
        let pools = Arc::new(Pools::new(
            &registry,
            &jobs,
            config.scrubs,
            (&exports, &anchors),
            (&fills, &wear, &health),
        ));
        let diagnostics = Arc::new(Diagnostics::new(&registry, &status, &volumes));
        let observables = Observables {
            registry: Arc::clone(&registry),
            access: Arc::clone(&access),
            status: Arc::clone(&status),
            exports: Arc::clone(&exports),
            jobs: Arc::clone(&jobs),
            schedules: Arc::clone(&schedules),
            fills: Arc::clone(&fills),
            wear: Arc::clone(&wear),
            health: Arc::clone(&health),
            history: Arc::clone(&history),
            notifications: Arc::clone(&notifications),
            bottlenecks: Arc::clone(&bottlenecks),
        };
        let observer = Observer::new(observables, config.flash_daily_percent, began);
        let metrics = MetricsSource::new(
            (&registry, &status),
            &exports,
            &jobs,
            &pools,
            &diagnostics,
            began,
        );
        Self {
            drives: Drives::new(&registry, sys_block, &wear, &health),
            fleet: Fleet::new(files, &pools, &notifications, &jobs),
            live: LiveStatus::new(&access, &status, &jobs, &volumes),
            playback: Playback::new(control, &status, &volumes),
            qos: Qos::new(&registry, &volumes, &history, &bottlenecks),
            ram: RamTiers::new(control, config.ram),
            snapshots: Snapshots::new(&registry, &exports, &volumes),
            transfers: Arc::new(Transfers::new(&registry, &exports, &jobs, &uses)),
            why: WhySlow::new(&registry, &status, &jobs, &history, &notifications),
            access,
            anchors,
            diagnostics,
            exports,
            fills,
            health,
            history,
            jobs,
            metrics,
            notifications,
            observer,
            pools,
            registry,
            schedules,
            volumes,
            wear,
        }
    }

    /// Loads the state folder, opens the pools that were open when the previous daemon stopped and
    /// those that are complete on `drives`, and starts their exports. Pools that cannot be opened
    /// are logged and listed as absent. Unreadable or unwritable state is reported, and the daemon
    /// continues without it.
    ///
    /// # Errors
    /// When a configured alert target is invalid.
    pub fn start(&self, drives: &[String]) -> Result<(), ServeError> {
        let _changes = self.registry.begin_change();
        self.access.load();
        self.notifications.load()?;
        self.fleet.load();
        self.history.load(now_s());
        self.jobs.load(now_s());
        self.notifications.note_start(now_s());
        self.pools.open_all(drives);
        Ok(())
    }

    /// Stops the exports, then the engine. Concurrent calls no longer change stored state.
    pub fn stop(&self) {
        // Otherwise a job that has just finished would be listed as interrupted.
        if let Err(problem) = self.jobs.refresh() {
            tracing::error!("cannot list the jobs: {problem}");
        }
        self.anchors.keep();
        let _changes = self.registry.begin_change();
        self.registry.note_stop();
        self.exports.stop_all();
        self.registry.control().shutdown();
        self.notifications.note_stop(now_s());
    }
}
