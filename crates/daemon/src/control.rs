//! The engine's interface as the daemon uses it, so that tests can substitute a fake.

use api::v1::Problem;
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
    (
        plain { $($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)* }
        of_pool { $($call:ident($($with:ident: $of:ty),*) -> $answer:ty;)* }
    ) => {
        /// The engine; each method delegates to the method of [`engine::Engine`] of the same name,
        /// with the same errors.
        #[expect(missing_docs, reason = "each is documented where the engine defines it")]
        pub trait Control: Send + Sync + 'static {
            $(fn $name(&self, $($argument: $type),*) -> $result;)*
            $(fn $call(&self, pool: &str, $($with: $of),*) -> Result<$answer>;)*
        }

        impl Control for Engine {
            $(fn $name(&self, $($argument: $type),*) -> $result {
                Engine::$name(self, $($argument),*)
            })*
            $(fn $call(&self, pool: &str, $($with: $of),*) -> Result<$answer> {
                Engine::$call(self, pool, $($with),*)
            })*
        }

        /// Calls of the engine on behalf of API requests about one pool, with errors converted to
        /// problems.
        pub(crate) trait PoolCalls {
            /// The engine.
            fn control(&self) -> &Arc<dyn Control>;

            /// Converts an error of the engine about a pool.
            fn problem(&self, pool: &str, error: EngineError) -> Problem;

            $(fn $call(&self, pool: &str, $($with: $of),*) -> std::result::Result<$answer, Problem> {
                let answered = self.control().$call(pool, $($with),*);
                answered.map_err(|error| self.problem(pool, error))
            })*
        }
    };
}

control! {
    plain {
        remotes() -> Vec<reactor::Remote>;
        shutdown() -> ();
        drive_probe(spec: &str) -> Result<DriveReport>;
        pool_create(spec: &PoolSpec) -> Result<PoolStatus>;
        look() -> Vec<PoolLook>;
        pool_list() -> Result<Vec<PoolStatus>>;
        pool_scan(drives: &[String]) -> Result<ScanReport>;
        pool_import(drives: &[String], pool: &str, options: ImportOptions) -> Result<PoolStatus>;
        jobs() -> Result<Vec<JobStatus>>;
        job_cancel(job: u64) -> Result<()>;
        job_pause(job: u64) -> Result<()>;
        job_resume(job: u64) -> Result<()>;
        pool_export(pool: &str) -> Result<()>;
        pool_destroy(pool: &str) -> Result<()>;
        pool_set_ram(pool: &str, bytes: u64) -> Result<()>;
        pool_scrub_since(pool: &str, since_s: u64) -> Result<()>;
        pool_keep_wear(pool: &str, now_s: u64) -> Result<()>;
        pool_anchor(pool: &str) -> Result<Option<String>>;
        pool_set_anchor(pool: &str, anchor: &str) -> Result<()>;
        pool_exports(pool: &str) -> Result<Vec<ExportRecord>>;
        pool_set_exports(pool: &str, exports: Vec<ExportRecord>) -> Result<()>;
        volume_reservations(pool: &str, volume: &str) -> Result<Option<String>>;
        volume_set_reservations(pool: &str, volume: &str, state: Option<String>) -> Result<()>;
        snapshot_unique(pool: &str, volume: &str, name: &str, go_on: &dyn Fn() -> bool) -> Result<Option<u64>>;
        schedule_take(pool: &str, volume: &str, schedule: &str, turn: &ScheduleTurn) -> Result<Vec<SnapshotStatus>>;
    }
    of_pool {
        pool_status() -> PoolStatus;
        pool_hold_promotion(hold: bool) -> ();
        pool_cool() -> ();
        pool_counters() -> IoCounters;
        pool_moves() -> Vec<MoveCount>;
        pool_what_if() -> WhatIf;
        pool_scrub(spec: &ScrubSpec) -> u64;
        pool_scrub_cancel() -> ();
        pool_scrub_status() -> ScrubStatus;
        pool_change(change: &PoolChange) -> PoolStatus;
        pool_warn_at(levels: &[u8]) -> PoolStatus;
        vdrive_add(spec: &VdriveSpec, force: bool) -> u8;
        vdrive_remove(vdrive: u8) -> u64;
        drive_online(drive: &str, force: bool) -> u64;
        drive_offline(drive: &str) -> ();
        drive_replace(old: &str, new: &str, force: bool) -> u64;
        qos_policies() -> Vec<QosPolicy>;
        qos_policy_create(policy: &QosPolicy) -> QosPolicy;
        qos_policy_change(policy: &str, change: &QosPolicyChange) -> QosPolicy;
        qos_policy_delete(policy: &str) -> ();
        qos_groups() -> Vec<QosGroup>;
        qos_group_create(group: &GroupChoice) -> QosGroup;
        qos_group_change(group: &GroupChoice) -> QosGroup;
        qos_group_delete(group: &str) -> ();
        qos_check(planned: Option<(&str, usize)>) -> QosCheck;
        volume_create_with(spec: &VolumeSpec, policy: &PolicyChoice) -> VolumeStatus;
        volume_list() -> Vec<VolumeStatus>;
        volume_resize(volume: &str, size: u64, shrink: bool) -> VolumeStatus;
        volume_change(volume: &str, change: &VolumeChange) -> VolumeStatus;
        volume_delete(volume: &str) -> u64;
        volume_open(volume: &str, initiator: Option<&str>) -> Arc<dyn BlockDevice>;
        volume_open_export(volume: &str, export: &str, initiator: Option<&str>) -> Arc<dyn BlockDevice>;
        volume_receiving(volume: &str) -> Option<ReceiveStatus>;
        volume_counters(volume: &str) -> IoCounters;
        volume_promote(volume: &str) -> Promotion;
        volume_roll_back(volume: &str, name: &str) -> VolumeStatus;
        snapshot_create(volumes: &[String], name: &str, now_s: u64) -> Vec<SnapshotStatus>;
        snapshot_list(volume: Option<&str>) -> Vec<SnapshotStatus>;
        snapshot_change(volume: &str, name: &str, new_name: Option<&str>, held: Option<bool>) -> SnapshotStatus;
        snapshot_delete(volume: &str, names: &[String]) -> ();
        snapshot_clone(volume: &str, name: &str, clone: &str) -> VolumeStatus;
        snapshot_diff(volume: &str, from: Option<&str>, to: Option<&str>, start: u64, limit: usize) -> SnapshotDiff;
        receive_begin(volume: &str, spec: &ReceiveSpec, force: bool) -> u64;
        receive_mark(volume: &str, done: u64) -> ();
        receive_end(volume: &str) -> Vec<SnapshotStatus>;
        schedule_set(spec: &ScheduleSpec, now_s: u64) -> ScheduleStatus;
        schedule_list(volume: Option<&str>) -> Vec<ScheduleStatus>;
        schedule_remove(volume: &str, schedule: &str) -> ();
        volume_map(volume: &str, bytes: Range<u64>, cells: usize) -> Vec<MapCell>;
        volume_explain(volume: &str, lba: u64) -> Explanation;
    }
}
