//! Conversions between types of the engine and types of the API.

use crate::protection;
use api::v1;

/// Conversion to the API's type.
pub trait ToApi {
    /// The interface's type.
    type Api;
    /// Converts the value.
    fn to_api(self) -> Self::Api;
}

/// Conversion to the engine's type.
pub trait ToEngine {
    /// The engine's type.
    type Engine;
    /// Converts the value.
    fn to_engine(self) -> Self::Engine;
}

/// Structs with equal field names and types.
macro_rules! same_fields {
    ($($from:ident => $to:ident { $($field:ident),* })*) => {
        $(impl ToApi for engine::$from {
            type Api = v1::$to;
            fn to_api(self) -> v1::$to {
                let Self { $($field),* } = self;
                v1::$to { $($field),* }
            }
        })*
    };
}

same_fields! {
    Importable => Importable { id, name, found, missing }
    IoCounters => Counters {
        reads, writes, read_bytes, write_bytes, flushes, blocks_ram, blocks_fast, blocks_slow,
        blocks_zero, bypassed_reads, bypassed_writes, bypassed_blocks, promoted_bytes,
        demoted_bytes, read_ns, write_ns
    }
    ScrubFaultStatus => ScrubFault { volume, offset, length, drive, error, repaired }
    MapCell => MapCell { ram, fast, slow, empty, uses }
    Promotion => Promotion { parent, snapshots }
    ExtentPlace => ExtentPlace { volume, offset }
    DrivePlace => DrivePlace { drive, byte }
}

impl<T: ToApi> ToApi for Vec<T> {
    type Api = Vec<T::Api>;
    fn to_api(self) -> Self::Api {
        self.into_iter().map(ToApi::to_api).collect()
    }
}

impl ToApi for engine::EngineError {
    type Api = v1::Problem;
    fn to_api(self) -> v1::Problem {
        use engine::ErrorCode;
        let code = match self.code {
            ErrorCode::NotFound => v1::ProblemCode::NotFound,
            ErrorCode::Exists => v1::ProblemCode::Exists,
            ErrorCode::Invalid => v1::ProblemCode::Invalid,
            ErrorCode::Refused => v1::ProblemCode::Refused,
            ErrorCode::Busy => v1::ProblemCode::Busy,
            ErrorCode::NoSpace => v1::ProblemCode::NoSpace,
            ErrorCode::Io => v1::ProblemCode::Io,
            ErrorCode::Damaged => v1::ProblemCode::Damaged,
        };
        v1::Problem::new(code, self.message)
    }
}

/// Without wear, which the manager adds.
impl ToApi for engine::DriveStatus {
    type Api = v1::Drive;
    fn to_api(self) -> v1::Drive {
        v1::Drive {
            id: self.id,
            spec: self.spec,
            size: self.size,
            state: self.state,
            reads: self.reads,
            writes: self.writes,
            read_bytes: self.read_bytes,
            write_bytes: self.write_bytes,
            errors: self.errors,
            repaired: self.repaired,
            timeouts: self.timeouts,
            slow: self.slow,
            why: self.why,
            synced_percent: self.synced_percent,
            wear: v1::Wear::default(),
            health: None,
        }
    }
}

impl ToApi for engine::DriveReport {
    type Api = v1::DriveReport;
    fn to_api(self) -> v1::DriveReport {
        v1::DriveReport {
            spec: self.spec,
            size: self.size,
            logical_sector: self.logical_sector,
            physical_sector: self.physical_sector,
            rotation: self.rotation,
            write_cache: self.write_cache,
            found: self.found,
            pool: self.pool,
            wear: None,
            health: None,
            error: None,
        }
    }
}

impl ToApi for engine::Tier {
    type Api = v1::Tier;
    fn to_api(self) -> v1::Tier {
        match self {
            Self::Fast => v1::Tier::Fast,
            Self::Slow => v1::Tier::Slow,
        }
    }
}

impl ToEngine for v1::Tier {
    type Engine = engine::Tier;
    fn to_engine(self) -> engine::Tier {
        match self {
            Self::Fast => engine::Tier::Fast,
            Self::Slow => engine::Tier::Slow,
        }
    }
}

impl ToApi for engine::LayoutSpec {
    type Api = v1::Layout;
    fn to_api(self) -> v1::Layout {
        match self {
            Self::Concat => v1::Layout::Concat,
            Self::Stripe { chunk } => v1::Layout::Stripe { chunk },
            Self::Mirror => v1::Layout::Mirror,
        }
    }
}

impl ToEngine for v1::Layout {
    type Engine = engine::LayoutSpec;
    fn to_engine(self) -> engine::LayoutSpec {
        match self {
            Self::Concat => engine::LayoutSpec::Concat,
            Self::Stripe { chunk } => engine::LayoutSpec::Stripe { chunk },
            Self::Mirror => engine::LayoutSpec::Mirror,
        }
    }
}

impl ToApi for engine::SpacePolicy {
    type Api = v1::SpacePolicy;
    fn to_api(self) -> v1::SpacePolicy {
        match self {
            Self::FastFirst => v1::SpacePolicy::FastFirst,
            Self::SlowFirst => v1::SpacePolicy::SlowFirst,
        }
    }
}

impl ToEngine for v1::SpacePolicy {
    type Engine = engine::SpacePolicy;
    fn to_engine(self) -> engine::SpacePolicy {
        match self {
            Self::FastFirst => engine::SpacePolicy::FastFirst,
            Self::SlowFirst => engine::SpacePolicy::SlowFirst,
        }
    }
}

impl ToEngine for v1::VdriveSpec {
    type Engine = engine::VdriveSpec;
    fn to_engine(self) -> engine::VdriveSpec {
        engine::VdriveSpec {
            tier: self.tier.to_engine(),
            layout: self.layout.to_engine(),
            drives: self.drives,
        }
    }
}

impl ToEngine for v1::PoolCreate {
    type Engine = engine::PoolSpec;
    fn to_engine(self) -> engine::PoolSpec {
        engine::PoolSpec {
            name: self.name,
            vdrives: self.vdrives.into_iter().map(ToEngine::to_engine).collect(),
            policy: self.policy.to_engine(),
            shards: self.shards,
            force: self.force,
            accept_unmirrored: self.accept_unmirrored,
        }
    }
}

impl ToApi for engine::VdriveStatus {
    type Api = v1::Vdrive;
    fn to_api(self) -> v1::Vdrive {
        v1::Vdrive {
            protection: Some(protection::of_vdrive(&self)),
            id: self.id,
            tier: self.tier.to_api(),
            layout: self.layout.to_api(),
            state: self.state,
            capacity: self.capacity,
            used: self.used,
            drives: self.drives.to_api(),
        }
    }
}

/// A pool with its fill levels.
pub fn pool(status: engine::PoolStatus, fills: Vec<v1::Fill>) -> v1::Pool {
    let promised = u128::from(status.promised) * 100 / u128::from(status.capacity.max(1));
    v1::Pool {
        protection: Some(protection::of_vdrives(&status.vdrives)),
        id: status.id,
        name: status.name,
        state: status.state,
        messages: status.messages,
        policy: status.policy.to_api(),
        shards: status.shards,
        capacity: status.capacity,
        used: status.used,
        reserved: status.reserved,
        overpromised: status.overpromised,
        promised: status.promised,
        promised_percent: u64::try_from(promised).unwrap_or(u64::MAX),
        fills,
        warn_at: status.warn_at,
        fast_capacity: status.fast_capacity,
        fast_dirty: status.fast_dirty,
        fast_shadow: status.fast_shadow,
        vdrives: status.vdrives.to_api(),
        volumes: status.volumes as u64,
        promotion_held: status.promotion_held,
        map_bytes: status.map_bytes,
        ram_bytes: status.ram_bytes,
        ram_limit: status.ram_limit,
        opening_lost: status.opening_lost,
        scrub: status.scrub.to_api(),
        promotion_budget: status.budget.map(ToApi::to_api),
    }
}

impl ToApi for engine::FillPart {
    type Api = v1::FillPart;
    fn to_api(self) -> v1::FillPart {
        match self {
            Self::Space => v1::FillPart::Space,
            Self::Metadata => v1::FillPart::Metadata,
            Self::Fast => v1::FillPart::Fast,
            Self::Slow => v1::FillPart::Slow,
        }
    }
}

impl ToApi for engine::ScrubStatus {
    type Api = v1::Scrub;
    fn to_api(self) -> v1::Scrub {
        v1::Scrub {
            state: self.state,
            began_s: self.began_s,
            took_s: self.took_s,
            bytes: self.bytes,
            total: self.total,
            rate: self.rate,
            seconds_left: self.seconds_left,
            job: self.job,
            blocks: self.blocks,
            errors: self.errors,
            repaired: self.repaired,
            lost: self.lost,
            faults: self.faults.to_api(),
        }
    }
}

impl ToApi for engine::JobStatus {
    type Api = v1::Job;
    fn to_api(self) -> v1::Job {
        let state = match self.state.as_str() {
            "running" => v1::JobState::Running,
            "paused" => v1::JobState::Paused,
            "done" => v1::JobState::Done,
            "cancelled" => v1::JobState::Cancelled,
            _ => v1::JobState::Failed,
        };
        v1::Job {
            id: self.id,
            kind: self.kind,
            subject: self.subject,
            state,
            done: self.done,
            total: self.total,
            percent: percent(state, self.done, self.total),
            rate: self.rate,
            seconds_left: self.seconds_left,
            message: self.message,
            began_s: 0,
            ended_s: None,
        }
    }
}

/// Progress of a job in percent; 100 only if it is complete.
pub fn percent(state: v1::JobState, done: u64, total: u64) -> f64 {
    let share = 100.0 * done as f64 / total.max(1) as f64;
    match state {
        v1::JobState::Done => 100.0,
        _ => (share * 10.0).floor().clamp(0.0, 999.0) / 10.0,
    }
}

/// A volume with the names of its exports and the protection of its pool.
pub fn volume(
    status: engine::VolumeStatus,
    exports: Vec<String>,
    protection: Option<v1::Protection>,
) -> v1::Volume {
    v1::Volume {
        protection,
        id: status.id,
        name: status.name,
        pool: status.pool,
        size: status.size,
        lba_size: status.lba_size,
        thick: status.thick,
        mapped: status.mapped,
        held: status.held,
        quota: Some(status.quota).filter(|quota| *quota > 0),
        reservation: Some(status.reservation).filter(|bytes| *bytes > 0),
        reserved: status.reserved,
        fast: status.fast,
        placement: Some(status.knobs.to_api()),
        targets: targets(status.targets),
        qos: status.qos.map(ToApi::to_api),
        serial: status.serial,
        state: status.state,
        exports,
        receiving: status.receiving.and_then(receiving),
    }
}

/// Performance targets of a volume; none if it has none.
fn targets(targets: engine::Targets) -> Option<v1::Targets> {
    let some = |value: u64| Some(value).filter(|value| *value > 0);
    (targets != engine::Targets::default()).then(|| v1::Targets {
        iops: some(targets.iops),
        bandwidth: some(targets.bandwidth),
        latency_ns: some(targets.latency_ns),
    })
}

/// Progress of a receive; none if the labels are inconsistent.
fn receiving(status: engine::ReceiveStatus) -> Option<v1::Receiving> {
    let from = status.from.map(|from| from.parse()).transpose().ok()?;
    let token = stream::Token {
        to: status.to.parse().ok()?,
        from,
        done: status.done,
    };
    Some(v1::Receiving {
        snapshot: status.snapshot,
        done: status.done,
        token: token.to_string(),
    })
}

/// An I/O error as a problem.
pub fn io_problem(what: &str, error: &block::IoError) -> v1::Problem {
    let code = match error.kind {
        block::ErrorKind::NoSpace => v1::ProblemCode::NoSpace,
        block::ErrorKind::Gone => v1::ProblemCode::NotFound,
        _ => v1::ProblemCode::Io,
    };
    v1::Problem::new(code, format!("{what}: {error}"))
}

impl ToApi for engine::ChangedRange {
    type Api = v1::ChangedRange;

    fn to_api(self) -> v1::ChangedRange {
        v1::ChangedRange {
            offset: self.offset,
            len: self.len,
            data: self.data,
        }
    }
}

impl ToApi for engine::SnapshotDiff {
    type Api = v1::SnapshotDiff;

    fn to_api(self) -> v1::SnapshotDiff {
        v1::SnapshotDiff {
            size: self.size,
            ranges: self.ranges.to_api(),
            next: self.next,
        }
    }
}

impl ToApi for engine::SnapshotStatus {
    type Api = v1::Snapshot;

    fn to_api(self) -> v1::Snapshot {
        v1::Snapshot {
            name: self.name,
            volume: self.volume,
            pool: self.pool,
            size: self.size,
            stored: self.stored,
            unique: None,
            created_s: self.created_s,
            held: self.held,
            clones: self.clones,
            schedule: Some(self.schedule).filter(|name| !name.is_empty()),
            identity: self.identity,
        }
    }
}
