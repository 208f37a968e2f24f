//! Every record that Convect writes to a drive: bytes to values and back. See docs/format.md.
//!
//! Responsible for: layout, checksums, and rejecting all invalid input.
//! Leaves out: when and where records are written; it does no I/O and reads no clock.

mod bounds;
mod bytes;
mod checkpoint;
mod chunk;
mod config;
mod config_check;
mod evidence;
mod features;
mod geometry;
mod groups;
mod holders;
mod identity;
mod journal;
mod knobs;
mod label;
mod layers;
mod layout;
mod node;
mod page;
mod qos;
mod record;
mod volume;
mod wear;

pub use bounds::{Bounded, Bounds, GroupSpace, OutOfBounds, SpaceClass};
pub use checkpoint::Checkpoint;
pub use checksum::crc32c;
pub use chunk::{BlockState, ChunkPage};
pub use config::{
    ANCHOR_MAX, CheckpointMark, DriveConfig, ExportConfig, LayerConfig, LayoutConfig, LegId,
    MetaConfig, OldConfig, PartConfig, PausedConfig, Policy, PoolConfig, RESERVATIONS_MAX,
    ReceivingConfig, ReservationsConfig, ScheduleConfig, ScrubConfig, ScrubRunning, ScrubTotals,
    SnapshotConfig, TargetsConfig, TierConfig, VdriveConfig, VolumeConfig, WARN_AT,
};
pub use config_check::{NUMBERS_MAX, check_warn_at, whole_limit};
pub use evidence::{DriveEvidence, Evidence, History, OldDrive, ShortDrive};
pub use features::{Features, KNOWN, LAYERS, Newer};
pub use geometry::{
    REGION, checkpoint_block, journal_start, pages_start, shard_of, shard_of_chunk,
};
pub use groups::{GroupKey, HOME_GROUPS, HomesPage, SlotsPage};
pub use identity::give_to_pool;
pub use journal::{JOURNAL_HEADER, JournalHeader, JournalPage, open_page, page_body, records_of};
pub use knobs::{
    BYPASS_MAX, INITIATOR_MAX, KnobsConfig, PINS_MAX, PinConfig, ReactionConfig, check_initiator,
};
pub use label::{
    DATA_START, LABEL_SIZE, Label, LabelError, MAX_DESCRIPTION, data_end, label_offsets,
    label_places, label_slots_for, readdress,
};
pub use layers::{Owner, Reader, Reap, Viewer};
pub use layout::{Fragment, Layout};
pub use node::{DIRECTORY, FANOUT, HOMES, NodePage, SLOTS, TREE_TOP, first_key};
pub use page::{PAGE, Page, PageHeader, PageKind, PagePtr};
pub use qos::{
    QOS_GROUPS_MAX, QOS_LEVELS, QOS_OWN_FROM, QOS_POLICIES_MAX, QOS_WEIGHT, QosConfig,
    QosGroupConfig, QosPolicyConfig, built_in_policies,
};
pub use record::{BlockMask, Few, Record, RecordError};
pub use volume::{BlockCounts, VolumePage};
pub use wear::WearConfig;
