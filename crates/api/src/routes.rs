//! The table of routes: one row an operation, with its shapes.

use crate::v1;
use std::collections::BTreeMap;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

pub(crate) type Components = BTreeMap<String, RefOr<Schema>>;
pub(crate) type Describe = fn(&mut Components) -> Ref;

/// Enters `T` and all that it names among the components.
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
    /// Makes, or does.
    Post,
    /// Sets.
    Put,
    /// Ends.
    Delete,
}

impl Method {
    /// As HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// Who may ask for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Least {
    /// Whoever reaches the daemon.
    Anyone,
    /// Whoever may look.
    Viewer,
    /// Whoever may change what hosts get: volumes, snapshots, exports.
    Operator,
    /// Whoever may change what that stands on: pools, drives, tokens.
    Admin,
}

impl Least {
    /// The role that is needed; nothing where anyone may.
    pub fn role(self) -> Option<v1::Role> {
        match self {
            Self::Anyone => None,
            Self::Viewer => Some(v1::Role::Viewer),
            Self::Operator => Some(v1::Role::Operator),
            Self::Admin => Some(v1::Role::Admin),
        }
    }
}

/// A parameter after the question mark.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub about: &'static str,
    /// What may stand there.
    pub shape: Shape,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Any text; the daemon says more where it is not good.
    Text,
    /// A whole number from this one up to that one, where there is a limit.
    Whole(u64, Option<u64>),
    /// `true` or `false`.
    Flag,
}

impl Shape {
    /// That of a segment of a path.
    pub(crate) fn of_segment(name: &str) -> Self {
        match name {
            "vdrive" => Self::Whole(0, Some(255)),
            "job" | "session" => Self::Whole(0, None),
            _ => Self::Text,
        }
    }
}

/// One operation of the interface.
#[derive(Clone, Copy)]
pub struct Route {
    /// Which.
    pub operation: Operation,
    /// The method.
    pub method: Method,
    /// Who may ask.
    pub least: Least,
    /// The path; `{name}` is a segment that the caller fills in.
    pub path: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Parameters after the question mark; all may be left out.
    pub query: &'static [Query],
    /// The status of success.
    pub status: u16,
    pub(crate) request: Body,
    pub(crate) answer: Body,
}

/// What a request or an answer carries.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// Nothing.
    None,
    /// JSON of this shape.
    Json(Describe),
    /// Bytes, as many as come (docs/stream.md).
    Stream,
    /// Text of one of these content types, as the client accepts (docs/metrics.md).
    Text(&'static [&'static str]),
    /// Server-sent events of these names, whose data is JSON of these shapes (docs/access.md).
    Events(&'static [(&'static str, Describe)]),
}

impl Route {
    /// Whether it takes a body.
    pub fn has_request(&self) -> bool {
        !matches!(self.request, Body::None)
    }

    /// Whether that is a stream, of any length.
    pub fn takes_stream(&self) -> bool {
        matches!(self.request, Body::Stream)
    }

    /// Whether it answers with a body.
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
        /// Everything that can be asked of the daemon.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Operation {
            $(#[doc = $about] $operation,)*
        }

        /// Every operation, once.
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
    about: "Only what belongs to this pool.",
    shape: Shape::Text,
}];
const POOL_AND_VOLUME: &[Query] = &[
    Query {
        name: "pool",
        about: "Only what belongs to this pool.",
        shape: Shape::Text,
    },
    Query {
        name: "volume",
        about: "Only what belongs to this volume.",
        shape: Shape::Text,
    },
];
const SNAPSHOTS: &[Query] = &[
    POOL_AND_VOLUME[0],
    POOL_AND_VOLUME[1],
    Query {
        name: "wait_s",
        about: "Seconds to look for what each snapshot alone has, 0 to 20; 1 when left out.",
        shape: Shape::Whole(0, Some(20)),
    },
];
const DIFF: &[Query] = &[
    Query {
        name: "from",
        about: "The snapshot that it is compared with, NAME or, of another volume, VOLUME@NAME; \
                nothing when left out: everything that is stored is listed.",
        shape: Shape::Text,
    },
    Query {
        name: "to",
        about: "The snapshot of the volume that is compared; the volume as it is now when left out.",
        shape: Shape::Text,
    },
    Query {
        name: "start",
        about: "Where to begin, in bytes; a multiple of 4,096.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "limit",
        about: "How many ranges at most, 1 to 65,536; 1,024 when left out. There may be fewer \
                though there are more.",
        shape: Shape::Whole(1, Some(65_536)),
    },
];
const SEND: &[Query] = &[
    Query {
        name: "from",
        about: "The snapshot that the receiver has, NAME or, of another volume, VOLUME@NAME; nothing \
                when left out: all of the snapshot is sent.",
        shape: Shape::Text,
    },
    Query {
        name: "resume",
        about: "The token of a volume that has a part of it: what it lacks is sent.",
        shape: Shape::Text,
    },
];
const RECEIVE: &[Query] = &[Query {
    name: "force",
    about: "With `true`, the volume is rolled back to the snapshot that the stream goes from: what was \
            written since is lost.",
    shape: Shape::Flag,
}];
const CELLS: &[Query] = &[
    Query {
        name: "cells",
        about: "How many parts, 1 to 65,536; 64 when left out.",
        shape: Shape::Whole(1, Some(65_536)),
    },
    Query {
        name: "start",
        about: "The first byte of the part of the volume that is looked at; 0 when left out.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "length",
        about: "How many bytes of it; up to its end when left out.",
        shape: Shape::Whole(0, None),
    },
];
const FRAMES: &[Query] = &[
    Query {
        name: "from",
        about: "The moment at which the map is told whole, in seconds since 1970; an hour before `to` when left out.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "to",
        about: "Up to when changes of it are told; now when left out.",
        shape: Shape::Whole(0, None),
    },
];
const LIVE: &[Query] = &[
    Query {
        name: "maps",
        about: "Volumes whose maps are told, too: up to 16, as POOL/VOLUME with commas between.",
        shape: Shape::Text,
    },
    Query {
        name: "cells",
        about: "Parts of each map, 1 to 4,096; 1,024 when left out.",
        shape: Shape::Whole(1, Some(4096)),
    },
    CELLS[1],
    CELLS[2],
    Query {
        name: "looks",
        about: "After how many looks it ends, 1 or more; when left out it does not.",
        shape: Shape::Whole(1, None),
    },
];
const AUDIT: &[Query] = &[
    Query {
        name: "before",
        about: "Only entries with a smaller number.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "limit",
        about: "How many entries at most, 1 to 1,000; 100 when left out.",
        shape: Shape::Whole(1, Some(1000)),
    },
];
const EVENTS: &[Query] = &[
    Query {
        name: "before",
        about: "Only events with a smaller number: `next` of the page before.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "limit",
        about: "How many events at most, 1 to 1,000; 100 when left out.",
        shape: Shape::Whole(1, Some(1000)),
    },
    Query {
        name: "severity",
        about: "Only events that matter at least so much: `info`, `warning` or `critical`.",
        shape: Shape::Text,
    },
    Query {
        name: "code",
        about: "Only events of these codes, with commas between.",
        shape: Shape::Text,
    },
    POOL[0],
];
const HISTORY: &[Query] = &[
    Query {
        name: "object",
        about: "Of what: pool/POOL, tier/POOL/fast (or ram, slow), drive/POOL/SPECIFICATION, volume/POOL/VOLUME, \
                policy/POOL/POLICY or export/POOL/EXPORT.",
        shape: Shape::Text,
    },
    Query {
        name: "series",
        about: "Only these figures, by their names with commas between.",
        shape: Shape::Text,
    },
    Query {
        name: "from",
        about: "The first second, since 1970; an hour before `to` when left out.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "to",
        about: "The second after the last; now when left out.",
        shape: Shape::Whole(0, None),
    },
    Query {
        name: "step",
        about: "Seconds of a step; what fits the time when left out. It becomes longer where what is that old is kept by \
                longer steps. There are at most 4,000 of them.",
        shape: Shape::Whole(1, None),
    },
];
const PLANNED: &[Query] = &[
    Query {
        name: "policy",
        about: "A policy of volumes that are planned, by its name or number; none are when left out.",
        shape: Shape::Text,
    },
    Query {
        name: "volumes",
        about: "How many of them, 1 to 10,000; 1 when left out.",
        shape: Shape::Whole(1, Some(10_000)),
    },
];
const LBA: &[Query] = &[Query {
    name: "lba",
    about: "The logical block, counted from 0 in the volume's unit of 512 or 4,096 bytes; 0 when left out.",
    shape: Shape::Whole(0, None),
}];

routes! {
    VersionShow, Get, Viewer, "/v1/version", 200, gives Version; "Says what answers."
    LogIn, Post, Anyone, "/v1/login", 201, takes LogIn, gives Login; "Begins a session of a browser with a token; its cookie stands for the token from then on."
    LoginShow, Get, Viewer, "/v1/login", 200, gives Login; "Says who asks, and what they may do."
    LogOut, Delete, Viewer, "/v1/login", 204; "Ends the session whose cookie came with the request."
    TokenList, Get, Admin, "/v1/tokens", 200, gives TokenList; "Lists the tokens, without their secrets."
    TokenCreate, Post, Admin, "/v1/tokens", 201, takes TokenCreate, gives TokenMade; "Makes a token; this is the only time that it is told."
    TokenRevoke, Delete, Admin, "/v1/tokens/{token}", 204; "Takes a token back, and ends its sessions."
    AuditList, Get, Admin, "/v1/audit", 200, gives AuditList, query AUDIT; "Lists who changed what and when, newest first."
    EventList, Get, Viewer, "/v1/events", 200, gives EventList, query EVENTS; "Lists what happened, newest first."
    AlertList, Get, Viewer, "/v1/alerts", 200, gives AlertList; "Lists what is wrong now, what matters most first."
    History, Get, Viewer, "/v1/history", 200, gives History, query HISTORY; "Tells how something did over time: by seconds for an hour, by minutes for a week, by hours for two years."
    TargetList, Get, Admin, "/v1/targets", 200, gives TargetList; "Lists who is told of events, without secrets."
    TargetCreate, Post, Admin, "/v1/targets", 201, takes TargetCreate, gives Target; "Has somebody told of events from now on, by webhook or e-mail."
    TargetDelete, Delete, Admin, "/v1/targets/{target}", 204; "Tells a target no more."
    TargetTest, Post, Admin, "/v1/targets/{target}/test", 204; "Tells a target of an event that is none, and says whether it took it."
    ServerList, Get, Viewer, "/v1/servers", 200, gives ServerList; "Shows this daemon and others beside each other; the others are asked while somebody looks."
    ServerCreate, Post, Admin, "/v1/servers", 201, takes ServerCreate, gives Server; "Has another daemon looked at from this one, with a token of it."
    ServerRemove, Delete, Admin, "/v1/servers/{server}", 204; "Forgets another daemon, with its token."
    Live, Get, Viewer, "/v1/live", 200, gives Live, query LIVE; "Tells once a second what changed, as server-sent events `state`, `map` and `event`."
    Metrics, Get, Viewer, "/metrics", 200, gives Metrics; "Tells all figures as Prometheus reads them."
    DriveList, Get, Viewer, "/v1/drives", 200, gives DriveList; "Lists the drives of the open pools and the block devices of this host."
    DriveProbe, Post, Admin, "/v1/drives/probe", 200, takes DriveProbe, gives DriveReport; "Opens a drive, looks and closes it again."
    DriveLocate, Post, Operator, "/v1/drives/locate", 204, takes DriveLocate; "Switches the light at a drive's slot, where an enclosure has one that the kernel knows."
    FrontEndList, Get, Viewer, "/v1/frontends", 200, gives FrontEndList; "Lists the front ends and their parameters."
    PoolList, Get, Viewer, "/v1/pools", 200, gives PoolList; "Lists the pools."
    PoolCreate, Post, Admin, "/v1/pools", 201, takes PoolCreate, gives Pool; "Makes a pool and opens it."
    PoolScan, Post, Admin, "/v1/importable", 200, takes PoolScan, gives ImportableList; "Lists the pools on the given drives that are not open."
    PoolShow, Get, Viewer, "/v1/pools/{pool}", 200, gives Pool; "Shows a pool."
    PoolChange, Put, Operator, "/v1/pools/{pool}", 200, takes PoolChange, gives Pool; "Changes how much promotion of a pool may write."
    PoolDestroy, Delete, Admin, "/v1/pools/{pool}", 204; "Forgets a pool and everything in it."
    PoolExport, Post, Admin, "/v1/pools/{pool}/export", 204; "Stops the pool's exports and closes its drives, for another host; a pool that could not be opened is forgotten."
    PoolImport, Post, Admin, "/v1/pools/{pool}/import", 200, takes PoolImport, gives Pool; "Opens a pool by name or id from its drives and starts its exports."
    PoolCounters, Get, Viewer, "/v1/pools/{pool}/counters", 200, gives Counters; "Counts what the pool did since it was opened."
    PoolLatency, Get, Viewer, "/v1/pools/{pool}/latency", 200, gives Latency; "Tells how long reads took since the pool was opened, by where blocks came from."
    PoolMoves, Get, Viewer, "/v1/pools/{pool}/moves", 200, gives MoveCountList; "Counts what the pool moved between RAM and tiers since it was opened, by reason."
    PoolWhatIf, Get, Viewer, "/v1/pools/{pool}/what-if", 200, gives WhatIf; "Forecasts what other sizes of the fast tier would give the pool and its volumes, by the traffic of late."
    PoolCool, Post, Operator, "/v1/pools/{pool}/cool", 204; "Writes everything back to its slow home and forgets all clean copies; answers when done."
    PoolHoldPromotion, Put, Operator, "/v1/pools/{pool}/hold-promotion", 204, takes HoldPromotion; "Holds or releases promotion into RAM and the fast tier."
    PoolScrub, Post, Operator, "/v1/pools/{pool}/scrub", 202, takes ScrubStart, gives JobRef; "Starts to read and check every copy of everything that the pool stores, and to mend what is not right."
    PoolScrubShow, Get, Viewer, "/v1/pools/{pool}/scrub", 200, gives Scrub; "Shows the scrub that runs, or the last one, with the first copies that were not right."
    PoolScrubCancel, Delete, Operator, "/v1/pools/{pool}/scrub", 204; "Ends the scrub that runs; what it mended stays mended."
    PoolWarnAt, Put, Operator, "/v1/pools/{pool}/warnings", 200, takes PoolWarnings, gives Pool; "Sets the levels at which it is warned that a pool fills."
    QosShow, Get, Viewer, "/v1/pools/{pool}/qos", 200, gives QosStatus; "Shows what a pool's volumes are promised by their policies, whether that fits, and what they attained."
    QosCheck, Get, Viewer, "/v1/pools/{pool}/qos/check", 200, gives QosCheck, query PLANNED; "Checks whether a pool can keep the minimums of its volumes' policies, and of planned ones."
    QosPolicyList, Get, Viewer, "/v1/pools/{pool}/qos/policies", 200, gives QosPolicyList; "Lists a pool's quality-of-service policies."
    QosPolicyCreate, Post, Operator, "/v1/pools/{pool}/qos/policies", 201, takes QosPolicyCreate, gives QosPolicy; "Creates a quality-of-service policy."
    QosPolicyShow, Get, Viewer, "/v1/pools/{pool}/qos/policies/{policy}", 200, gives QosPolicy; "Shows a quality-of-service policy."
    QosPolicyChange, Put, Operator, "/v1/pools/{pool}/qos/policies/{policy}", 200, takes QosPolicyChange, gives QosPolicy; "Changes a quality-of-service policy for all volumes that have it."
    QosPolicyDelete, Delete, Operator, "/v1/pools/{pool}/qos/policies/{policy}", 204; "Deletes a quality-of-service policy that no volume and no group has."
    QosGroupList, Get, Viewer, "/v1/pools/{pool}/qos/groups", 200, gives QosGroupList; "Lists a pool's groups of volumes that share a policy."
    QosGroupCreate, Post, Operator, "/v1/pools/{pool}/qos/groups", 201, takes QosGroupCreate, gives QosGroup; "Creates a group of volumes that share a policy."
    QosGroupShow, Get, Viewer, "/v1/pools/{pool}/qos/groups/{group}", 200, gives QosGroup; "Shows a group of volumes that share a policy."
    QosGroupChange, Put, Operator, "/v1/pools/{pool}/qos/groups/{group}", 200, takes QosGroupChange, gives QosGroup; "Gives a group of volumes another policy."
    QosGroupDelete, Delete, Operator, "/v1/pools/{pool}/qos/groups/{group}", 204; "Deletes a group that no volume is in."
    VdriveList, Get, Viewer, "/v1/pools/{pool}/vdrives", 200, gives VdriveList; "Lists a pool's vdrives."
    VdriveAdd, Post, Admin, "/v1/pools/{pool}/vdrives", 201, takes VdriveAdd, gives VdriveRef; "Adds a vdrive to a pool."
    VdriveRemove, Delete, Admin, "/v1/pools/{pool}/vdrives/{vdrive}", 202, gives JobRef; "Starts to evacuate a vdrive; it leaves the pool when the job ends."
    DriveOnline, Post, Admin, "/v1/pools/{pool}/drives/online", 202, takes DriveOnline, gives JobRef; "Brings a drive back into its mirrors; the job copies what it lacks."
    DriveOffline, Post, Admin, "/v1/pools/{pool}/drives/offline", 204, takes DriveOffline; "Takes a drive out of its mirrors and lets it go."
    DriveReplace, Post, Admin, "/v1/pools/{pool}/drives/replace", 202, takes DriveReplace, gives JobRef; "Puts a new drive in the place of one of a mirror's; the job fills it."
    VolumeList, Get, Viewer, "/v1/volumes", 200, gives VolumeList, query POOL; "Lists volumes."
    VolumeCreate, Post, Operator, "/v1/volumes", 201, takes VolumeCreate, gives Volume; "Makes a volume."
    VolumeShow, Get, Viewer, "/v1/volumes/{pool}/{volume}", 200, gives Volume; "Shows a volume."
    VolumeChange, Put, Operator, "/v1/volumes/{pool}/{volume}", 200, takes VolumeChange, gives Volume; "Changes how much of its pool a volume may take, its placement, and its quality of service."
    VolumeDelete, Delete, Operator, "/v1/volumes/{pool}/{volume}", 202, gives JobRef; "Deletes a volume; the job frees its space."
    VolumeResize, Post, Operator, "/v1/volumes/{pool}/{volume}/resize", 200, takes VolumeResize, gives Volume; "Grows a volume, or shrinks it when told to."
    VolumeRollBack, Post, Operator, "/v1/volumes/{pool}/{volume}/rollback", 200, takes VolumeRollBack, gives Volume; "Makes a volume as it was when a snapshot was taken."
    VolumePromote, Post, Operator, "/v1/volumes/{pool}/{volume}/promote", 200, gives Promotion; "Gives a clone the snapshot that it was made from and those before it; the volume that had them is a clone of that snapshot then."
    SnapshotList, Get, Viewer, "/v1/snapshots", 200, gives SnapshotList, query SNAPSHOTS; "Lists snapshots."
    SnapshotCreate, Post, Operator, "/v1/snapshots", 201, takes SnapshotCreate, gives SnapshotList; "Takes a snapshot of volumes of a pool, all at one moment."
    SnapshotShow, Get, Viewer, "/v1/snapshots/{pool}/{volume}/{snapshot}", 200, gives Snapshot; "Shows a snapshot, without what it alone has."
    SnapshotChange, Put, Operator, "/v1/snapshots/{pool}/{volume}/{snapshot}", 200, takes SnapshotChange, gives Snapshot; "Renames a snapshot, keeps it from being deleted, or lets it be."
    SnapshotDelete, Delete, Operator, "/v1/snapshots/{pool}/{volume}/{snapshot}", 204; "Deletes a snapshot; what it alone had comes free in the background."
    SnapshotClone, Post, Operator, "/v1/snapshots/{pool}/{volume}/{snapshot}/clone", 201, takes SnapshotClone, gives Volume; "Makes a volume that begins as a snapshot is."
    SnapshotDiff, Get, Viewer, "/v1/volumes/{pool}/{volume}/diff", 200, gives SnapshotDiff, query DIFF; "Lists what a volume or a snapshot has otherwise than a snapshot that it stands on."
    SnapshotSend, Get, Operator, "/v1/snapshots/{pool}/{volume}/{snapshot}/stream", 200, gives Stream, query SEND; "Sends a snapshot, or what it has otherwise than one before, as a stream (docs/stream.md)."
    VolumeReceive, Post, Operator, "/v1/volumes/{pool}/{volume}/stream", 201, takes Stream, gives Received, query RECEIVE; "Makes a volume, or brings one on, from a stream; the snapshot is there when the whole stream was right."
    ScheduleList, Get, Viewer, "/v1/schedules", 200, gives ScheduleList, query POOL_AND_VOLUME; "Lists when snapshots are taken by themselves."
    ScheduleSet, Post, Operator, "/v1/schedules", 200, takes ScheduleSet, gives Schedule; "Sets when snapshots of volumes of a pool are taken by themselves, all at one moment, and how many are kept."
    ScheduleRemove, Delete, Operator, "/v1/schedules/{pool}/{volume}/{schedule}", 204; "Takes a volume out of a schedule; its snapshots stay."
    VolumeCounters, Get, Viewer, "/v1/volumes/{pool}/{volume}/counters", 200, gives Counters; "Counts what the volume did since its pool was opened."
    VolumeLatency, Get, Viewer, "/v1/volumes/{pool}/{volume}/latency", 200, gives Latency; "Tells how long reads of the volume took since its pool was opened, by where blocks came from."
    VolumeMap, Get, Viewer, "/v1/volumes/{pool}/{volume}/map", 200, gives VolumeMap, query CELLS; "Says where a volume lies."
    VolumeMapFrames, Get, Viewer, "/v1/volumes/{pool}/{volume}/map/frames", 200, gives MapFrames, query FRAMES; "Says where a volume lay in the last hour, as a map and what changed of it."
    VolumeExplain, Get, Viewer, "/v1/volumes/{pool}/{volume}/explain", 200, gives Explanation, query LBA; "Says where a block lies, since when, why it was moved there and what it displaced."
    ExportList, Get, Viewer, "/v1/exports", 200, gives ExportList, query POOL; "Lists exports."
    ExportCreate, Post, Operator, "/v1/exports", 201, takes ExportCreate, gives Export; "Offers a volume through a front end, now and after every start."
    ExportShow, Get, Viewer, "/v1/exports/{export}", 200, gives Export, query POOL; "Shows an export."
    ExportDelete, Delete, Operator, "/v1/exports/{export}", 204, query POOL; "Ends an export and forgets it."
    ExportSet, Put, Operator, "/v1/exports/{export}/parameters", 200, takes ExportChange, gives Export, query POOL; "Changes parameters of an export while hosts go on, as far as its front end can."
    SessionList, Get, Viewer, "/v1/sessions", 200, gives SessionList; "Lists hosts' sessions, of front ends that know them (iSCSI)."
    SessionEnd, Delete, Operator, "/v1/sessions/{session}", 204; "Asks a host to log out and ends its session soon. It may come again: take its access first."
    JobList, Get, Viewer, "/v1/jobs", 200, gives JobList; "Lists jobs, newest first."
    JobShow, Get, Viewer, "/v1/jobs/{job}", 200, gives Job; "Shows a job."
    JobCancel, Post, Operator, "/v1/jobs/{job}/cancel", 204; "Ends a job; what it moved stays moved."
    JobPause, Post, Operator, "/v1/jobs/{job}/pause", 204; "Has a job rest until it is told to go on, also over a restart; not one that lives as long as a connection."
    JobResume, Post, Operator, "/v1/jobs/{job}/resume", 204; "Has a paused job go on."
}

impl Operation {
    /// Its row.
    pub fn route(self) -> &'static Route {
        &ROUTES[self as usize]
    }
}
