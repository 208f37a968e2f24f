//! The table of routes: one row per operation, with its types.

use crate::v1;
use std::collections::BTreeMap;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

pub(crate) type Components = BTreeMap<String, RefOr<Schema>>;
pub(crate) type Describe = fn(&mut Components) -> Ref;

/// Adds the schemas of `T` and of all types that it refers to.
fn shape<T: ToSchema + PartialSchema>(components: &mut Components) -> Ref {
    let mut named = Vec::new();
    T::schemas(&mut named);
    components.extend(named);
    components.insert(T::name().into_owned(), T::schema());
    Ref::from_schema_name(T::name())
}

/// An HTTP method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or starts.
    Post,
    /// Changes.
    Put,
    /// Deletes.
    Delete,
}

impl Method {
    /// Its name in HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// Minimum role that an operation requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Least {
    /// No role: every client.
    Anyone,
    /// Read only.
    Viewer,
    /// Changes to volumes, snapshots and exports.
    Operator,
    /// Changes to pools, drives and tokens.
    Admin,
}

impl Least {
    /// The required role; none for [`Self::Anyone`].
    pub fn role(self) -> Option<v1::Role> {
        match self {
            Self::Anyone => None,
            Self::Viewer => Some(v1::Role::Viewer),
            Self::Operator => Some(v1::Role::Operator),
            Self::Admin => Some(v1::Role::Admin),
        }
    }
}

/// A query parameter.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Name of the parameter.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Permitted values.
    pub shape: Shape,
}

/// Type of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Text, which the daemon validates.
    Text,
    /// Integer, from a minimum to an optional maximum.
    Whole(u64, Option<u64>),
    /// `true` or `false`.
    Flag,
}

impl Shape {
    /// Type of a path parameter.
    pub(crate) fn of_segment(name: &str) -> Self {
        match name {
            "vdrive" => Self::Whole(0, Some(255)),
            "job" | "session" => Self::Whole(0, None),
            _ => Self::Text,
        }
    }
}

/// An operation of the API.
#[derive(Clone, Copy)]
pub struct Route {
    /// The operation.
    pub operation: Operation,
    /// HTTP method.
    pub method: Method,
    /// Minimum role.
    pub least: Least,
    /// Path; `{name}` is a parameter.
    pub path: &'static str,
    /// Description.
    pub about: &'static str,
    /// Query parameters, all optional.
    pub query: &'static [Query],
    /// Status code of success.
    pub status: u16,
    pub(crate) request: Body,
    pub(crate) answer: Body,
}

/// Body of a request or response.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// No body.
    None,
    /// JSON with this schema.
    Json(Describe),
    /// Binary stream of any length (docs/stream.md).
    Stream,
    /// Text in one of these content types, negotiated with the client (docs/metrics.md).
    Text(&'static [&'static str]),
    /// Server-sent events with these names, whose data is JSON with these schemas (docs/access.md).
    Events(&'static [(&'static str, Describe)]),
}

impl Route {
    /// Whether requests have a body.
    pub fn has_request(&self) -> bool {
        !matches!(self.request, Body::None)
    }

    /// Whether requests have a stream of any length as body.
    pub fn takes_stream(&self) -> bool {
        matches!(self.request, Body::Stream)
    }

    /// Whether responses have a body.
    pub fn has_answer(&self) -> bool {
        !matches!(self.answer, Body::None)
    }
}

macro_rules! shape_of {
    () => {
        Body::None
    };
    (Stream) => {
        Body::Stream
    };
    (Metrics) => {
        Body::Text(METRICS)
    };
    (Live) => {
        Body::Events(&[
            ("state", shape::<v1::LiveState>),
            ("map", shape::<v1::LiveMap>),
            ("event", shape::<v1::Event>),
        ])
    };
    ($type:ident) => {
        Body::Json(shape::<v1::$type> as Describe)
    };
}

macro_rules! routes {
    ($($operation:ident, $method:ident, $role:ident, $path:literal, $status:literal
       $(, takes $request:ident)? $(, gives $answer:ident)? $(, query $query:expr)?; $about:literal)*) => {
        /// Operations of the API.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Operation {
            $(#[doc = $about] $operation,)*
        }

        /// All operations, each once.
        pub const ROUTES: &[Route] = &[$(Route {
            operation: Operation::$operation,
            method: Method::$method,
            least: Least::$role,
            path: $path,
            about: $about,
            query: {
                let query: &'static [Query] = &[];
                $(let _ = query; let query: &'static [Query] = $query;)?
                query
            },
            status: $status,
            request: shape_of!($($request)?),
            answer: shape_of!($($answer)?),
        }),*];
    };
}

const METRICS: &[&str] = &["application/openmetrics-text", "text/plain"];
const POOL: &[Query] = &[Query {
    name: "pool",
    about: "Only objects of this pool.",
    shape: Shape::Text,
}];
const POOL_AND_VOLUME: &[Query] = &[
    Query {
        name: "pool",
        about: "Only objects of this pool.",
        shape: Shape::Text,
    },
    Query {
        name: "volume",
        about: "Only objects of this volume.",
        shape: Shape::Text,
    },
];
const SNAPSHOTS: &[Query] = &[
    POOL_AND_VOLUME[0],
    POOL_AND_VOLUME[1],
    Query {
        name: "wait_s",
        about: "Seconds to spend on computing `unique`, 0 to 20; 1 by default.",
        shape: Shape::Whole(0, Some(20)),
    },
];
const DIFF: &[Query] = &[
    Query {
        name: "from",
        about: "Snapshot to compare with: NAME, or VOLUME@NAME for one of another volume. By default all \
                stored ranges are listed.",
        shape: Shape::Text,
    },
    Query {
        name: "to",
        about: "Snapshot of the volume to compare; the volume as it is now by default.",
        shape: Shape::Text,
    },
    Query {
        name: "start",
        about: "Start offset in bytes, a multiple of 4,096.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "limit",
        about: "Maximum number of ranges, 1 to 65,536; 1,024 by default. A page may have fewer, with \
                more to follow (`next`).",
        shape: Shape::Whole(1, Some(65_536)),
    },
];
const SEND: &[Query] = &[
    Query {
        name: "from",
        about: "Incremental: base snapshot that the receiver has, NAME, or VOLUME@NAME for one of another \
                volume. By default the full snapshot is sent.",
        shape: Shape::Text,
    },
    Query {
        name: "resume",
        about: "Token of an interrupted receive: only what it lacks is sent.",
        shape: Shape::Text,
    },
];
const RECEIVE: &[Query] = &[Query {
    name: "force",
    about: "Roll the volume back to the base snapshot of the stream first: what was written since is lost.",
    shape: Shape::Flag,
}];
const FORCE: &[Query] = &[Query {
    name: "force",
    about: "Continue although hosts are connected, or the object is exported: they are disconnected.",
    shape: Shape::Flag,
}];
const FORCE_IN_POOL: &[Query] = &[FORCE[0], POOL[0]];
const CELLS: &[Query] = &[
    Query {
        name: "cells",
        about: "Number of cells, 1 to 65,536; 64 by default.",
        shape: Shape::Whole(1, Some(65_536)),
    },
    Query {
        name: "start",
        about: "Start of the range in bytes; 0 by default.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "length",
        about: "Length of the range in bytes; to the end of the volume by default.",
        shape: Shape::Whole(0, None),
    },
];
const FRAMES: &[Query] = &[
    Query {
        name: "from",
        about: "Time of the first, complete map, in seconds since 1970; an hour before `to` by default.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "to",
        about: "End of the changes, in seconds since 1970; now by default.",
        shape: Shape::Whole(0, None),
    },
];
const LIVE: &[Query] = &[
    Query {
        name: "maps",
        about: "Volumes whose maps are streamed as well: up to 16, as POOL/VOLUME separated by commas.",
        shape: Shape::Text,
    },
    Query {
        name: "cells",
        about: "Number of cells of each map, 1 to 4,096; 1,024 by default.",
        shape: Shape::Whole(1, Some(4096)),
    },
    CELLS[1],
    CELLS[2],
    Query {
        name: "looks",
        about: "Number of samples after which the stream ends, at least 1; unlimited by default.",
        shape: Shape::Whole(1, None),
    },
];
const AUDIT: &[Query] = &[
    Query {
        name: "before",
        about: "Only entries with a lower number.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "limit",
        about: "Maximum number of entries, 1 to 1,000; 100 by default.",
        shape: Shape::Whole(1, Some(1000)),
    },
];
const EVENTS: &[Query] = &[
    Query {
        name: "before",
        about: "Only events with a lower number: `next` of the previous page.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "limit",
        about: "Maximum number of events, 1 to 1,000; 100 by default.",
        shape: Shape::Whole(1, Some(1000)),
    },
    Query {
        name: "severity",
        about: "Minimum severity: `info`, `warning` or `critical`.",
        shape: Shape::Text,
    },
    Query {
        name: "code",
        about: "Only events with these codes, separated by commas.",
        shape: Shape::Text,
    },
    POOL[0],
];
const HISTORY: &[Query] = &[
    Query {
        name: "object",
        about: "Object: pool/POOL, tier/POOL/fast (or ram, slow), drive/POOL/SPECIFICATION, volume/POOL/VOLUME, \
                policy/POOL/POLICY or export/POOL/EXPORT.",
        shape: Shape::Text,
    },
    Query {
        name: "series",
        about: "Only these metrics, by name, separated by commas.",
        shape: Shape::Text,
    },
    Query {
        name: "from",
        about: "Start, in seconds since 1970; an hour before `to` by default.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "to",
        about: "End (exclusive), in seconds since 1970; now by default.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "step",
        about: "Length of a step in seconds; chosen to fit the time range by default. It is extended where older \
                values are kept in longer steps, and there are at most 4,000 steps.",
        shape: Shape::Whole(1, None),
    },
];
const WHY: &[Query] = &[
    Query {
        name: "from",
        about: "Start of the examined time, in seconds since 1970; five minutes before `to` by default.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "to",
        about: "End (exclusive), in seconds since 1970; now by default.",
        shape: Shape::Whole(0, None),
    },
];
const PLANNED: &[Query] = &[
    Query {
        name: "policy",
        about: "Policy of planned volumes, by name or number; none are planned by default.",
        shape: Shape::Text,
    },
    Query {
        name: "volumes",
        about: "Number of planned volumes, 1 to 10,000; 1 by default.",
        shape: Shape::Whole(1, Some(10_000)),
    },
];
const LBA: &[Query] = &[Query {
    name: "lba",
    about: "Logical block number, in the volume's block size of 512 or 4,096 bytes; 0 by default.",
    shape: Shape::Whole(0, None),
}];

routes! {
    VersionShow, Get, Viewer, "/v1/version", 200, gives Version; "Show the version of the daemon and the API."
    LogIn, Post, Anyone, "/v1/login", 201, takes LogIn, gives Login; "Log in a browser with a token; the returned session cookie replaces the token."
    LoginShow, Get, Viewer, "/v1/login", 200, gives Login; "Show the caller's identity and role."
    LogOut, Delete, Viewer, "/v1/login", 204; "End the caller's session."
    TokenList, Get, Admin, "/v1/tokens", 200, gives TokenList; "List tokens, without their secrets."
    TokenCreate, Post, Admin, "/v1/tokens", 201, takes TokenCreate, gives TokenMade; "Create a token; its secret is shown only once."
    TokenRevoke, Delete, Admin, "/v1/tokens/{token}", 204; "Revoke a token, and end its sessions."
    AuditList, Get, Admin, "/v1/audit", 200, gives AuditList, query AUDIT; "List the audit log, newest first."
    EventList, Get, Viewer, "/v1/events", 200, gives EventList, query EVENTS; "List events, newest first."
    AlertList, Get, Viewer, "/v1/alerts", 200, gives AlertList; "List open alerts, most severe first."
    History, Get, Viewer, "/v1/history", 200, gives History, query HISTORY; "Show the performance history of an object: per second for an hour, per minute for a week, per hour for two years."
    TargetList, Get, Admin, "/v1/targets", 200, gives TargetList; "List notification targets, without their secrets."
    TargetCreate, Post, Admin, "/v1/targets", 201, takes TargetCreate, gives Target; "Create a notification target: webhook or e-mail."
    TargetDelete, Delete, Admin, "/v1/targets/{target}", 204; "Delete a notification target."
    TargetTest, Post, Admin, "/v1/targets/{target}/test", 204; "Send a test event to a notification target; fails if it is not accepted."
    ServerList, Get, Viewer, "/v1/servers", 200, gives ServerList; "List this daemon and the servers that it monitors; they are queried only while clients view them."
    ServerCreate, Post, Admin, "/v1/servers", 201, takes ServerCreate, gives Server; "Add another daemon to monitor, with one of its tokens."
    ServerRemove, Delete, Admin, "/v1/servers/{server}", 204; "Remove a monitored daemon and its token."
    Live, Get, Viewer, "/v1/live", 200, gives Live, query LIVE; "Stream changes once a second, as server-sent events `state`, `map` and `event`."
    Metrics, Get, Viewer, "/metrics", 200, gives Metrics; "Export all metrics for Prometheus."
    DriveList, Get, Viewer, "/v1/drives", 200, gives DriveList; "List the drives of the open pools and the block devices of this host."
    DriveProbe, Post, Admin, "/v1/drives/probe", 200, takes DriveProbe, gives DriveReport; "Probe a drive: open it, read its properties and contents, and close it."
    DriveLocate, Post, Operator, "/v1/drives/locate", 204, takes DriveLocate; "Switch the locate LED of a drive's slot, where the enclosure has one that the kernel supports."
    FrontEndList, Get, Viewer, "/v1/frontends", 200, gives FrontEndList; "List export protocols and their parameters."
    PoolList, Get, Viewer, "/v1/pools", 200, gives PoolList; "List pools."
    PoolCreate, Post, Admin, "/v1/pools", 201, takes PoolCreate, gives Pool; "Create a pool and open it."
    PoolScan, Post, Admin, "/v1/importable", 200, takes PoolScan, gives ImportableList; "List pools on these drives that are not open."
    PoolShow, Get, Viewer, "/v1/pools/{pool}", 200, gives Pool; "Show a pool."
    PoolChange, Put, Operator, "/v1/pools/{pool}", 200, takes PoolChange, gives Pool; "Change the promotion write budget of a pool."
    PoolDestroy, Delete, Admin, "/v1/pools/{pool}", 204, query FORCE; "Destroy a pool and all data in it; refused while volumes of it are exported."
    PoolExport, Post, Admin, "/v1/pools/{pool}/export", 204, query FORCE; "Close a pool: stop its exports and close its drives, so that another host can import it; refused while hosts are connected. A pool that could not be opened is forgotten."
    PoolImport, Post, Admin, "/v1/pools/{pool}/import", 200, takes PoolImport, gives Pool; "Open a pool by name or id from its drives, and start its exports."
    PoolCounters, Get, Viewer, "/v1/pools/{pool}/counters", 200, gives Counters; "Show the counters of a pool since it was opened."
    PoolLatency, Get, Viewer, "/v1/pools/{pool}/latency", 200, gives Latency; "Show read latency of a pool since it was opened, by the tier that served the reads."
    PoolMoves, Get, Viewer, "/v1/pools/{pool}/moves", 200, gives MoveCountList; "Show how much data a pool moved between RAM and its tiers since it was opened, by direction and reason."
    PoolWhatIf, Get, Viewer, "/v1/pools/{pool}/what-if", 200, gives WhatIf; "Forecast hit ratio and latency of a pool and its volumes with other sizes of the fast tier, from recent I/O."
    PoolCool, Post, Operator, "/v1/pools/{pool}/cool", 204; "Flush and drop the fast-tier cache: write back all dirty data and evict all clean copies. Returns when done."
    PoolHoldPromotion, Put, Operator, "/v1/pools/{pool}/hold-promotion", 204, takes HoldPromotion; "Pause or resume promotion into RAM and the fast tier."
    PoolScrub, Post, Operator, "/v1/pools/{pool}/scrub", 202, takes ScrubStart, gives JobRef; "Start a scrub: verify every copy of all data, and repair bad ones."
    PoolScrubShow, Get, Viewer, "/v1/pools/{pool}/scrub", 200, gives Scrub; "Show the running scrub, or the last one, with the first bad copies."
    PoolScrubCancel, Delete, Operator, "/v1/pools/{pool}/scrub", 204; "Cancel the running scrub; repaired copies stay repaired."
    PoolWarnAt, Put, Operator, "/v1/pools/{pool}/warnings", 200, takes PoolWarnings, gives Pool; "Set the usage levels at which a warning is raised."
    QosShow, Get, Viewer, "/v1/pools/{pool}/qos", 200, gives QosStatus; "Show guarantees, whether they fit, and attained performance of a pool's volumes."
    QosCheck, Get, Viewer, "/v1/pools/{pool}/qos/check", 200, gives QosCheck, query PLANNED; "Check whether a pool can guarantee the minimums of existing and planned volumes."
    QosPolicyList, Get, Viewer, "/v1/pools/{pool}/qos/policies", 200, gives QosPolicyList; "List the quality-of-service policies of a pool."
    QosPolicyCreate, Post, Operator, "/v1/pools/{pool}/qos/policies", 201, takes QosPolicyCreate, gives QosPolicy; "Create a quality-of-service policy."
    QosPolicyShow, Get, Viewer, "/v1/pools/{pool}/qos/policies/{policy}", 200, gives QosPolicy; "Show a quality-of-service policy."
    QosPolicyChange, Put, Operator, "/v1/pools/{pool}/qos/policies/{policy}", 200, takes QosPolicyChange, gives QosPolicy; "Change a quality-of-service policy for all volumes that use it."
    QosPolicyDelete, Delete, Operator, "/v1/pools/{pool}/qos/policies/{policy}", 204; "Delete a quality-of-service policy that no volume and no group uses."
    QosGroupList, Get, Viewer, "/v1/pools/{pool}/qos/groups", 200, gives QosGroupList; "List the groups of a pool whose volumes share a policy."
    QosGroupCreate, Post, Operator, "/v1/pools/{pool}/qos/groups", 201, takes QosGroupCreate, gives QosGroup; "Create a group of volumes that share a policy."
    QosGroupShow, Get, Viewer, "/v1/pools/{pool}/qos/groups/{group}", 200, gives QosGroup; "Show a group of volumes that share a policy."
    QosGroupChange, Put, Operator, "/v1/pools/{pool}/qos/groups/{group}", 200, takes QosGroupChange, gives QosGroup; "Change the policy of a group of volumes."
    QosGroupDelete, Delete, Operator, "/v1/pools/{pool}/qos/groups/{group}", 204; "Delete an empty group."
    VdriveList, Get, Viewer, "/v1/pools/{pool}/vdrives", 200, gives VdriveList; "List the vdrives of a pool."
    VdriveAdd, Post, Admin, "/v1/pools/{pool}/vdrives", 201, takes VdriveAdd, gives VdriveRef; "Add a vdrive to a pool."
    VdriveRemove, Delete, Admin, "/v1/pools/{pool}/vdrives/{vdrive}", 202, gives JobRef; "Start the evacuation of a vdrive, which is removed from the pool when the job has completed."
    DriveOnline, Post, Admin, "/v1/pools/{pool}/drives/online", 202, takes DriveOnline, gives JobRef; "Bring a drive back online; the job resyncs its mirrors."
    DriveOffline, Post, Admin, "/v1/pools/{pool}/drives/offline", 204, takes DriveOffline; "Take a mirror member offline, and close the drive."
    DriveReplace, Post, Admin, "/v1/pools/{pool}/drives/replace", 202, takes DriveReplace, gives JobRef; "Replace a mirror member by another drive; the job resyncs it."
    VolumeList, Get, Viewer, "/v1/volumes", 200, gives VolumeList, query POOL; "List volumes."
    VolumeCreate, Post, Operator, "/v1/volumes", 201, takes VolumeCreate, gives Volume; "Create a volume."
    VolumeShow, Get, Viewer, "/v1/volumes/{pool}/{volume}", 200, gives Volume; "Show a volume."
    VolumeChange, Put, Operator, "/v1/volumes/{pool}/{volume}", 200, takes VolumeChange, gives Volume; "Change settings of a volume: quota, reservation, placement, performance targets, quality of service."
    VolumeDelete, Delete, Operator, "/v1/volumes/{pool}/{volume}", 202, gives JobRef, query FORCE; "Delete a volume, with `force` also its exports; the job frees its space."
    VolumeResize, Post, Operator, "/v1/volumes/{pool}/{volume}/resize", 200, takes VolumeResize, gives Volume; "Grow a volume, or shrink it with `shrink`; shrinking is refused while hosts are connected."
    VolumeRollBack, Post, Operator, "/v1/volumes/{pool}/{volume}/rollback", 200, takes VolumeRollBack, gives Volume; "Roll a volume back to a snapshot; refused while it is offered by an export."
    VolumePromote, Post, Operator, "/v1/volumes/{pool}/{volume}/promote", 200, gives Promotion; "Promote a clone: swap it with its origin. The clone takes over the origin and all earlier snapshots of that volume, which becomes a clone of the origin."
    SnapshotList, Get, Viewer, "/v1/snapshots", 200, gives SnapshotList, query SNAPSHOTS; "List snapshots."
    SnapshotCreate, Post, Operator, "/v1/snapshots", 201, takes SnapshotCreate, gives SnapshotList; "Create a snapshot of several volumes of a pool atomically."
    SnapshotShow, Get, Viewer, "/v1/snapshots/{pool}/{volume}/{snapshot}", 200, gives Snapshot; "Show a snapshot, without `unique`."
    SnapshotChange, Put, Operator, "/v1/snapshots/{pool}/{volume}/{snapshot}", 200, takes SnapshotChange, gives Snapshot; "Rename, hold or release a snapshot."
    SnapshotDelete, Delete, Operator, "/v1/snapshots/{pool}/{volume}/{snapshot}", 204, query FORCE; "Delete a snapshot, with `force` also its exports; its space is freed in the background."
    SnapshotClone, Post, Operator, "/v1/snapshots/{pool}/{volume}/{snapshot}/clone", 201, takes SnapshotClone, gives Volume; "Create a clone: a volume with the content of a snapshot."
    SnapshotDiff, Get, Viewer, "/v1/volumes/{pool}/{volume}/diff", 200, gives SnapshotDiff, query DIFF; "List the ranges of a volume or snapshot that changed since an earlier snapshot in its chain."
    SnapshotSend, Get, Operator, "/v1/snapshots/{pool}/{volume}/{snapshot}/stream", 200, gives Stream, query SEND; "Send a full or incremental snapshot stream (docs/stream.md)."
    VolumeReceive, Post, Operator, "/v1/volumes/{pool}/{volume}/stream", 201, takes Stream, gives Received, query RECEIVE; "Receive a snapshot stream into a new or existing volume; the snapshot appears when the whole stream has been verified."
    ScheduleList, Get, Viewer, "/v1/schedules", 200, gives ScheduleList, query POOL_AND_VOLUME; "List snapshot schedules."
    ScheduleSet, Post, Operator, "/v1/schedules", 200, takes ScheduleSet, gives Schedule; "Set a snapshot schedule of volumes of a pool: their snapshots are taken atomically at an interval, and the oldest are deleted."
    ScheduleRemove, Delete, Operator, "/v1/schedules/{pool}/{volume}/{schedule}", 204; "Remove a volume from a snapshot schedule; existing snapshots stay."
    VolumeCounters, Get, Viewer, "/v1/volumes/{pool}/{volume}/counters", 200, gives Counters; "Show the counters of a volume since its pool was opened."
    VolumeLatency, Get, Viewer, "/v1/volumes/{pool}/{volume}/latency", 200, gives Latency; "Show read latency of a volume since its pool was opened, by the tier that served the reads."
    VolumeMap, Get, Viewer, "/v1/volumes/{pool}/{volume}/map", 200, gives VolumeMap, query CELLS; "Show the map of a volume: bytes by tier and cell."
    VolumeMapFrames, Get, Viewer, "/v1/volumes/{pool}/{volume}/map/frames", 200, gives MapFrames, query FRAMES; "Show the map history of a volume in the last hour: a complete map, and its changes."
    VolumeExplain, Get, Viewer, "/v1/volumes/{pool}/{volume}/explain", 200, gives Explanation, query LBA; "Explain where a block is stored, since when, why it was moved there and what it displaced."
    VolumeWhy, Get, Viewer, "/v1/volumes/{pool}/{volume}/why", 200, gives Why, query WHY; "Explain why a volume is slow, or was at an earlier time: causes by the latency that they explain, with evidence and what to do."
    ExportList, Get, Viewer, "/v1/exports", 200, gives ExportList, query POOL; "List exports."
    ExportCreate, Post, Operator, "/v1/exports", 201, takes ExportCreate, gives Export; "Export a volume by a protocol, now and whenever its pool is opened."
    ExportShow, Get, Viewer, "/v1/exports/{export}", 200, gives Export, query POOL; "Show an export."
    ExportDelete, Delete, Operator, "/v1/exports/{export}", 204, query POOL; "Stop and delete an export."
    ExportSet, Put, Operator, "/v1/exports/{export}/parameters", 200, takes ExportChange, gives Export, query POOL; "Change parameters of an export while hosts are connected, where its protocol allows it."
    ExportDisable, Post, Operator, "/v1/exports/{export}/disable", 200, gives Export, query FORCE_IN_POOL; "Disable an export: it is no longer offered, but keeps its parameters; refused while hosts are connected."
    ExportEnable, Post, Operator, "/v1/exports/{export}/enable", 200, gives Export, query POOL; "Enable an export again, with the same parameters."
    SessionList, Get, Viewer, "/v1/sessions", 200, gives SessionList; "List the sessions of hosts, for protocols that have sessions (iSCSI)."
    SessionEnd, Delete, Operator, "/v1/sessions/{session}", 204; "Disconnect a session: the host is asked to log out, and disconnected shortly afterwards. It may log in again unless its access is revoked first."
    JobList, Get, Viewer, "/v1/jobs", 200, gives JobList; "List jobs, newest first."
    JobShow, Get, Viewer, "/v1/jobs/{job}", 200, gives Job; "Show a job."
    JobCancel, Post, Operator, "/v1/jobs/{job}/cancel", 204; "Cancel a job; completed work is kept."
    JobPause, Post, Operator, "/v1/jobs/{job}/pause", 204; "Pause a job until it is resumed, also across restarts of the daemon; not for `send` and `receive`."
    JobResume, Post, Operator, "/v1/jobs/{job}/resume", 204; "Resume a paused job."
}

impl Operation {
    /// Its row of the table.
    pub fn route(self) -> &'static Route {
        &ROUTES[self as usize]
    }
}
