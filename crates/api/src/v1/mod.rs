//! Version 1. Sizes are in bytes and times in seconds unless the name says otherwise. Requests with
//! unknown fields are refused; responses may get additional fields.

mod access;
mod drives;
mod events;
mod explain;
mod exports;
mod fills;
mod health;
mod history;
mod jobs;
mod latency;
mod live;
mod placement;
mod playback;
mod pools;
mod problem;
mod qos;
mod schedules;
mod scrubs;
mod servers;
mod sessions;
mod snapshots;
mod targets;
mod volumes;
mod wear;
mod what_if;
mod why;

pub use access::{
    AuditEntry, AuditList, LogIn, Login, Role, Token, TokenCreate, TokenList, TokenMade,
};
pub use drives::{
    DriveList, DriveLocate, DriveOffline, DriveOnline, DriveProbe, DriveReplace, DriveReport,
};
pub use events::{
    Alert, AlertList, Event, EventCode, EventList, EventState, Severity, Subject, SubjectKind,
};
pub use explain::{
    BlockPlace, DrivePlace, Explanation, ExtentHeat, ExtentPlace, Move, MoveCount, MoveCountList,
};
pub use exports::{
    Export, ExportChange, ExportCreate, ExportList, FrontEnd, FrontEndList, Parameter,
};
pub use fills::{Fill, FillPart, PoolWarnings, Trend};
pub use health::{DriveHealth, HealthState};
pub use history::{History, HistorySeries, HistorySpread, HistorySpreads};
pub use jobs::{Job, JobList, JobRef, JobState};
pub use latency::{Latency, SourceLatency};
pub use live::{LiveMap, LivePolicy, LivePool, LiveState, LiveVolume};
pub use placement::{Bypass, Pin, PinChange, PinTo, Placement, Reaction, WriteBudget};
pub use playback::{MapFrame, MapFrames};
pub use pools::{
    AbsentPool, Counters, Drive, HoldPromotion, Importable, ImportableList, Layout, Pool,
    PoolCreate, PoolImport, PoolList, PoolScan, Protection, SpacePolicy, Tier, Vdrive, VdriveAdd,
    VdriveList, VdriveRef, VdriveSpec,
};
pub use problem::{Problem, ProblemCode, Version};
pub use qos::{
    QosBottleneck, QosCheck, QosClaim, QosGroup, QosGroupChange, QosGroupCreate, QosGroupList,
    QosPolicy, QosPolicyChange, QosPolicyCreate, QosPolicyList, QosRival, QosStatus, QosTier,
    QosVerdict, QosVolume, VolumeQos,
};
pub use schedules::{Schedule, ScheduleList, ScheduleSet};
pub use scrubs::{Scrub, ScrubFault, ScrubStart};
pub use servers::{
    Server, ServerAlert, ServerCreate, ServerList, ServerLoad, ServerPool, ServerState,
};
pub use sessions::{Session, SessionList};
pub use snapshots::{
    ChangedRange, Promotion, Snapshot, SnapshotChange, SnapshotClone, SnapshotCreate, SnapshotDiff,
    SnapshotList, VolumeRollBack,
};
pub use targets::{MailSecurity, Target, TargetCreate, TargetList, TargetTo};
pub use volumes::{
    MapCell, Received, Receiving, Targets, Volume, VolumeChange, VolumeCreate, VolumeList,
    VolumeMap, VolumeResize,
};
pub use wear::{PoolChange, PromotionBudget, Wear};
pub use what_if::{Forecast, ForecastPoint, WhatIf};
pub use why::{Why, WhyAction, WhyCause, WhyFinding, WhyLoad, WhyVerdict};
