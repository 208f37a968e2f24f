//! The constants of the modelled drives. docs/drive-model.md says where they come from.

/// A kind of drive that can be modelled.
pub struct Profile {
    /// As it is written: `hdd-7200`.
    pub name: &'static str,
    /// Description, in a sentence.
    pub about: &'static str,
    pub(super) parts: Parts,
}

pub(super) enum Parts {
    Disk(DiskProfile),
    Ssd(SsdProfile),
}

/// A spinning disk. Times are nanoseconds, rates bytes per second, sizes bytes.
pub(super) struct DiskProfile {
    pub revolution_ns: u64,
    /// Seek to a neighbouring track.
    pub seek_track_ns: u64,
    /// Seek over [`SEEK_KNEE`] of the stroke, where the curve turns from root to line.
    pub seek_knee_ns: u64,
    /// Seek over the whole stroke.
    pub seek_full_ns: u64,
    /// More for a write: the head has to be steadier.
    pub write_settle_ns: u64,
    /// Electronics, for each command.
    pub command_ns: u64,
    /// Sustained rate at the outer edge.
    pub rate_outer: u64,
    /// Sustained rate at the inner edge.
    pub rate_inner: u64,
    /// The wire's rate.
    pub rate_wire: u64,
    /// Part of the buffer that takes writes.
    pub write_cache: u64,
    /// Ranges that it holds at most: the firmware's list of them is short.
    pub write_ranges: usize,
    /// Read-ahead while idle.
    pub read_ahead: u64,
    /// A command that has waited so long goes first.
    pub age_max_ns: u64,
}

/// Share of the stroke at which the seek curve turns from root to line.
pub(super) const SEEK_KNEE: f64 = 0.2;

/// A solid-state drive. Times are nanoseconds, rates bytes per second, sizes bytes.
pub(super) struct SsdProfile {
    /// Dies that work side by side.
    pub dies: usize,
    /// Reading a page of a die.
    pub read_ns: u64,
    /// Programming a page of a die, in the background.
    pub program_ns: u64,
    /// Bytes of a page: what one read or program moves.
    pub page: u64,
    /// Electronics, for each command.
    pub command_ns: u64,
    /// The wire's time for each command.
    pub wire_command_ns: u64,
    /// The wire's rate.
    pub rate_wire: u64,
    /// Buffer that takes writes.
    pub write_cache: u64,
    /// Additional background cost of a non-sequential small write: the pages that
    /// it breaks up are copied later.
    pub scattered_cost: u64,
    /// Writing the map at a flush, after the buffer is empty.
    pub flush_ns: u64,
    /// Mean of bytes written between two collections of garbage.
    pub collect_every: u64,
    /// Shortest and longest stop of a die for one.
    pub collect_ns: (u64, u64),
}

static PROFILES: [Profile; 3] = [
    Profile {
        name: "hdd-7200",
        about: "A 7,200 rpm SATA disk of 3.5 inches.",
        parts: Parts::Disk(DiskProfile {
            revolution_ns: 8_333_333,
            seek_track_ns: 500_000,
            seek_knee_ns: 7_000_000,
            seek_full_ns: 16_000_000,
            write_settle_ns: 600_000,
            command_ns: 150_000,
            rate_outer: 200_000_000,
            rate_inner: 95_000_000,
            rate_wire: 550_000_000,
            write_cache: 48 << 20,
            write_ranges: 128,
            read_ahead: 2 << 20,
            age_max_ns: 500_000_000,
        }),
    },
    Profile {
        name: "hdd-10000",
        about: "A 10,000 rpm SAS disk of 2.5 inches.",
        parts: Parts::Disk(DiskProfile {
            revolution_ns: 6_000_000,
            seek_track_ns: 350_000,
            seek_knee_ns: 3_300_000,
            seek_full_ns: 7_500_000,
            write_settle_ns: 400_000,
            command_ns: 100_000,
            rate_outer: 230_000_000,
            rate_inner: 125_000_000,
            rate_wire: 1_100_000_000,
            write_cache: 48 << 20,
            write_ranges: 128,
            read_ahead: 2 << 20,
            age_max_ns: 300_000_000,
        }),
    },
    Profile {
        name: "ssd-sata",
        about: "A SATA SSD with 16 dies and a volatile buffer.",
        parts: Parts::Ssd(SsdProfile {
            dies: 16,
            read_ns: 60_000,
            program_ns: 480_000,
            page: 16 << 10,
            command_ns: 20_000,
            wire_command_ns: 3_000,
            rate_wire: 560_000_000,
            write_cache: 32 << 20,
            scattered_cost: 3,
            flush_ns: 400_000,
            collect_every: 96 << 20,
            collect_ns: (2_000_000, 8_000_000),
        }),
    },
];

/// Every kind of drive that can be modelled.
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}
