//! The engine as the daemon sees it, so that tests can put another in its place.

use block::BlockDevice;
use engine::{
    DriveReport, Engine, EngineError, Explanation, ExportRecord, GroupChoice, ImportOptions,
    IoCounters, JobStatus, MapCell, MoveCount, PolicyChoice, PoolChange, PoolLook, PoolSpec,
    PoolStatus, Promotion, QosCheck, QosGroup, QosPolicy, QosPolicyChange, ReceiveSpec,
    ReceiveStatus, ScanReport, ScheduleSpec, ScheduleStatus, ScheduleTurn, ScrubSpec, ScrubStatus,
    SnapshotDiff, SnapshotStatus, VdriveSpec, VolumeChange, VolumeSpec, VolumeStatus, WhatIf,
};
use std::ops::Range;
use std::sync::Arc;

type Result<T> = std::result::Result<T, EngineError>;

macro_rules! control {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        /// What is asked of the engine; each method is the one of [`engine::Engine`] of its name
        /// and fails as that does.
        #[expect(missing_docs, reason = "each is documented where the engine defines it")]
        pub trait Control: Send + Sync + 'static {
            $(
                fn $name(&self, $($argument: $type),*) -> $result;
            )*
        }

        impl Control for Engine {
            $(fn $name(&self, $($argument: $type),*) -> $result {
                Engine::$name(self, $($argument),*)
            })*
        }
    };
}

control! {
    remotes() -> Vec<reactor::Remote>;
    shutdown() -> ();
    drive_probe(spec: &str) -> Result<DriveReport>;
    pool_create(spec: &PoolSpec) -> Result<PoolStatus>;
    look() -> Vec<PoolLook>;
    pool_list() -> Result<Vec<PoolStatus>>;
    pool_status(pool: &str) -> Result<PoolStatus>;
    pool_scan(drives: &[String]) -> Result<ScanReport>;
    pool_import(drives: &[String], pool: &str, options: ImportOptions) -> Result<PoolStatus>;
    pool_export(pool: &str) -> Result<()>;
    pool_destroy(pool: &str) -> Result<()>;
    pool_hold_promotion(pool: &str, hold: bool) -> Result<()>;
    pool_set_ram(pool: &str, bytes: u64) -> Result<()>;
    pool_cool(pool: &str) -> Result<()>;
    pool_counters(pool: &str) -> Result<IoCounters>;
    pool_moves(pool: &str) -> Result<Vec<MoveCount>>;
    pool_what_if(pool: &str) -> Result<WhatIf>;
    pool_scrub(pool: &str, spec: &ScrubSpec) -> Result<u64>;
    pool_scrub_cancel(pool: &str) -> Result<()>;
    pool_scrub_status(pool: &str) -> Result<ScrubStatus>;
    pool_scrub_since(pool: &str, since_s: u64) -> Result<()>;
    pool_change(pool: &str, change: &PoolChange) -> Result<PoolStatus>;
    pool_keep_wear(pool: &str, now_s: u64) -> Result<()>;
    pool_anchor(pool: &str) -> Result<Option<String>>;
    pool_set_anchor(pool: &str, anchor: &str) -> Result<()>;
    pool_warn_at(pool: &str, levels: &[u8]) -> Result<PoolStatus>;
    pool_exports(pool: &str) -> Result<Vec<ExportRecord>>;
    pool_set_exports(pool: &str, exports: Vec<ExportRecord>) -> Result<()>;
    vdrive_add(pool: &str, spec: &VdriveSpec, force: bool) -> Result<u8>;
    vdrive_remove(pool: &str, vdrive: u8) -> Result<u64>;
    drive_online(pool: &str, drive: &str, force: bool) -> Result<u64>;
    drive_offline(pool: &str, drive: &str) -> Result<()>;
    drive_replace(pool: &str, old: &str, new: &str, force: bool) -> Result<u64>;
    jobs() -> Result<Vec<JobStatus>>;
    job_cancel(job: u64) -> Result<()>;
    job_pause(job: u64) -> Result<()>;
    job_resume(job: u64) -> Result<()>;
    qos_policies(pool: &str) -> Result<Vec<QosPolicy>>;
    qos_policy_create(pool: &str, policy: &QosPolicy) -> Result<QosPolicy>;
    qos_policy_change(pool: &str, policy: &str, change: &QosPolicyChange) -> Result<QosPolicy>;
    qos_policy_delete(pool: &str, policy: &str) -> Result<()>;
    qos_groups(pool: &str) -> Result<Vec<QosGroup>>;
    qos_group_create(pool: &str, group: &GroupChoice) -> Result<QosGroup>;
    qos_group_change(pool: &str, group: &GroupChoice) -> Result<QosGroup>;
    qos_group_delete(pool: &str, group: &str) -> Result<()>;
    qos_check(pool: &str, planned: Option<(&str, usize)>) -> Result<QosCheck>;
    volume_create_with(pool: &str, spec: &VolumeSpec, policy: &PolicyChoice) -> Result<VolumeStatus>;
    volume_list(pool: &str) -> Result<Vec<VolumeStatus>>;
    volume_resize(pool: &str, volume: &str, size: u64, shrink: bool) -> Result<VolumeStatus>;
    volume_change(pool: &str, volume: &str, change: &VolumeChange) -> Result<VolumeStatus>;
    volume_delete(pool: &str, volume: &str) -> Result<u64>;
    volume_open(pool: &str, volume: &str, initiator: Option<&str>) -> Result<Arc<dyn BlockDevice>>;
    volume_open_export(pool: &str, volume: &str, export: &str, initiator: Option<&str>) -> Result<Arc<dyn BlockDevice>>;
    volume_receiving(pool: &str, volume: &str) -> Result<Option<ReceiveStatus>>;
    volume_counters(pool: &str, volume: &str) -> Result<IoCounters>;
    volume_reservations(pool: &str, volume: &str) -> Result<Option<String>>;
    volume_set_reservations(pool: &str, volume: &str, state: Option<String>) -> Result<()>;
    volume_promote(pool: &str, volume: &str) -> Result<Promotion>;
    volume_roll_back(pool: &str, volume: &str, name: &str) -> Result<VolumeStatus>;
    snapshot_create(pool: &str, volumes: &[String], name: &str, now_s: u64) -> Result<Vec<SnapshotStatus>>;
    snapshot_list(pool: &str, volume: Option<&str>) -> Result<Vec<SnapshotStatus>>;
    snapshot_unique(pool: &str, volume: &str, name: &str, go_on: &dyn Fn() -> bool) -> Result<Option<u64>>;
    snapshot_change(pool: &str, volume: &str, name: &str, new_name: Option<&str>, held: Option<bool>) -> Result<SnapshotStatus>;
    snapshot_delete(pool: &str, volume: &str, names: &[String]) -> Result<()>;
    snapshot_clone(pool: &str, volume: &str, name: &str, clone: &str) -> Result<VolumeStatus>;
    snapshot_diff(pool: &str, volume: &str, from: Option<&str>, to: Option<&str>, start: u64, limit: usize) -> Result<SnapshotDiff>;
    receive_begin(pool: &str, volume: &str, spec: &ReceiveSpec, force: bool) -> Result<u64>;
    receive_mark(pool: &str, volume: &str, done: u64) -> Result<()>;
    receive_end(pool: &str, volume: &str) -> Result<Vec<SnapshotStatus>>;
    schedule_set(pool: &str, spec: &ScheduleSpec, now_s: u64) -> Result<ScheduleStatus>;
    schedule_list(pool: &str, volume: Option<&str>) -> Result<Vec<ScheduleStatus>>;
    schedule_remove(pool: &str, volume: &str, schedule: &str) -> Result<()>;
    schedule_take(pool: &str, volume: &str, schedule: &str, turn: &ScheduleTurn) -> Result<Vec<SnapshotStatus>>;
    volume_map(pool: &str, volume: &str, bytes: Range<u64>, cells: usize) -> Result<Vec<MapCell>>;
    volume_explain(pool: &str, volume: &str, lba: u64) -> Result<Explanation>;
}
