//! Why a block is where it is: the report about it, and every reason for which blocks are moved.

/// Sources and destinations of moves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Spot {
    /// A host.
    Host,
    /// RAM.
    Ram,
    /// The fast tier.
    Fast,
    /// The slow tier.
    Slow,
    /// Whichever tier had them.
    Any,
    /// Nowhere: they are zeroes.
    Nowhere,
}

impl Spot {
    /// Its name in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Ram => "ram",
            Self::Fast => "fast",
            Self::Slow => "slow",
            Self::Any => "any",
            Self::Nowhere => "nowhere",
        }
    }
}

struct Row {
    from: Spot,
    to: Spot,
    drops: bool,
    reason: &'static str,
    about: &'static str,
}

macro_rules! drops {
    (moves) => {
        false
    };
    (drops) => {
        true
    };
}

macro_rules! causes {
    ($($name:ident: $from:ident $way:ident $to:ident, $reason:literal, $about:literal;)*) => {
        /// Why blocks moved: a reason, and from where to where. A copy that is dropped goes to where the
        /// block is left.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Cause {
            $(#[doc = $about] $name,)*
        }

        impl Cause {
            /// Every cause, once.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        const ROWS: &[Row] = &[$(Row {
            from: Spot::$from,
            to: Spot::$to,
            drops: drops!($way),
            reason: $reason,
            about: $about,
        }),*];
    };
}

causes! {
    Written: Host moves Fast, "written", "a host wrote it";
    WrittenSlow: Host moves Slow, "written_slow", "a host wrote it, and the fast tier had no room";
    Discarded: Any moves Nowhere, "discarded", "a host discarded it";
    Missed: Slow moves Ram, "missed", "a host read it";
    CameAlong: Slow moves Ram, "dense", "hosts had read much of its surroundings";
    Foreseen: Slow moves Ram, "foreseen", "hosts had read it after the same sequence before";
    RoseWorth: Ram moves Fast, "worth", "it was evicted from RAM and was worth a place on the fast tier";
    RoseRoom: Ram moves Fast, "room", "it was evicted from RAM, and the fast tier had room";
    RoseDense: Ram moves Fast, "dense", "it was evicted from RAM as part of a frequently read region";
    RosePinned: Ram moves Fast, "pinned", "it was evicted from RAM and is pinned to the fast tier";
    RaisedPinned: Slow moves Fast, "pinned", "it is pinned to the fast tier";
    StayedKnobs: Ram drops Slow, "knobs", "RAM needed room, and its volume's settings keep it off the fast tier: no promotion, a ceiling, a budget or a pin";
    StayedBudget: Ram drops Slow, "budget", "RAM needed room, and the pool's promotion budget was used up";
    StayedLow: Ram drops Slow, "not_worth", "RAM needed room, and it was not worth a place on the fast tier";
    StayedUnasked: Ram drops Slow, "not_asked", "RAM needed room, and it had not been used there";
    StayedQueued: Ram drops Slow, "many_wait", "RAM needed room, and the promotion queue was full";
    StayedNoRoom: Ram drops Slow, "no_room", "it was to be promoted, and the fast tier had no room";
    StayedOvertaken: Ram drops Slow, "overtaken", "it was to be promoted, and was changed or in use meanwhile";
    LeftWithPage: Ram drops Slow, "map_memory", "the page cache needed room, and its map page was evicted";
    LeftCooled: Ram drops Slow, "cooled", "the pool's fast tier was flushed and dropped";
    EvictedLeast: Fast drops Slow, "worth_least", "the fast tier needed room, and it was worth least of the candidates";
    EvictedOver: Fast drops Slow, "over_ceiling", "its volume had more on the fast tier than its ceiling";
    EvictedPinned: Fast drops Slow, "pinned", "it is pinned to the slow tier";
    EvictedUnused: Fast drops Slow, "unused", "the fast tier needed room, and it had not been used since the pool was opened";
    EvictedNext: Fast drops Slow, "next", "the fast tier needed room, and it was next in the order of addresses";
    EvictedCooled: Fast drops Slow, "cooled", "the pool's fast tier was flushed and dropped";
    EvictedSpared: Fast drops Slow, "spared", "a shard needed space, and its surroundings were being freed";
    EvictedWrong: Fast drops Slow, "unreadable", "its copy on the fast tier could not be read";
    SankSettled: Fast moves Slow, "sank_settled", "it had not been written for a while; the fast tier keeps a copy";
    SankShort: Fast moves Slow, "sank_short", "the fast tier needed room; it keeps a copy for now";
    SankPinned: Fast moves Slow, "sank_pinned", "it is pinned to the slow tier";
    SankCooled: Fast moves Slow, "sank_cooled", "the pool's fast tier was flushed and dropped";
    PackedSettled: Fast moves Slow, "packed_settled", "its 1 MiB holds little and had not been written for a while";
    PackedShort: Fast moves Slow, "packed_short", "its 1 MiB holds little, and the fast tier needed room";
    PackedPinned: Fast moves Slow, "packed_pinned", "its 1 MiB holds little and is pinned to the slow tier";
    PackedCooled: Fast moves Slow, "packed_cooled", "the pool's fast tier was flushed and dropped";
    Gathered: Slow moves Slow, "gathered", "its 1 MiB had been packed and was given a home location of its own";
    SparedFast: Fast moves Fast, "spared", "a shard needed space, and scattered blocks were moved together";
    SparedSlow: Slow moves Slow, "spared", "a shard needed space, and scattered blocks were moved together";
    ClearedFast: Any moves Fast, "cleared", "its location was being freed";
    ClearedSlow: Any moves Slow, "cleared", "its location was being freed";
    MendedFast: Any moves Fast, "mended", "a copy of it was bad and was rewritten";
    MendedSlow: Any moves Slow, "mended", "a copy of it was bad and was rewritten";
    Merged: Any moves Any, "merged", "a snapshot was deleted, and its data was merged into another one or into its volume";
}

impl Cause {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// From where.
    pub fn from(self) -> Spot {
        self.row().from
    }

    /// To where.
    pub fn to(self) -> Spot {
        self.row().to
    }

    /// Whether a copy was dropped, and nothing was written.
    pub fn drops(self) -> bool {
        self.row().drops
    }

    /// The reason's name in the interface: the same one for different ways.
    pub fn reason(self) -> &'static str {
        self.row().reason
    }

    /// The reason in words, as what follows "because".
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// Whether it takes room on the fast tier that something may have left before.
    pub(crate) fn takes_room(self) -> bool {
        self.to() == Spot::Fast && matches!(self.from(), Spot::Host | Spot::Ram | Spot::Slow)
    }

    /// Whether it was to make room on the fast tier.
    pub(crate) fn makes_room(self) -> bool {
        matches!(
            self,
            Self::EvictedLeast | Self::EvictedUnused | Self::EvictedNext | Self::PackedShort
        )
    }
}

/// How often something was done for a cause, since the pool was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MoveCount {
    /// The cause.
    pub cause: Cause,
    /// Moves of an extent or a part of one.
    pub moves: u64,
    /// Bytes that they moved, or of the copies that they abandoned.
    pub bytes: u64,
}

/// An extent of some volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtentPlace {
    /// The volume, or `VOLUME@SNAPSHOT`; none of what was deleted since.
    pub volume: Option<String>,
    /// Its first byte there.
    pub offset: u64,
}

/// A move of blocks of one extent.
#[derive(Clone, PartialEq, Debug)]
pub struct MoveStatus {
    /// Nanoseconds since then.
    pub ago_ns: u64,
    /// Why.
    pub cause: Cause,
    /// Which blocks of the extent; bit 0 is the first.
    pub blocks: u16,
    /// The extent's value at that time, where it was decisive; otherwise 0.
    pub worth: f32,
    /// The threshold that it was compared with; 0 if there was room.
    pub wanted: f32,
    /// The last data that had been evicted from the tier before these blocks took its space.
    pub displaced: Option<ExtentPlace>,
}

/// A byte of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrivePlace {
    /// The drive's specification.
    pub drive: String,
    /// The byte.
    pub byte: u64,
}

/// The state of a block at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyKind {
    /// The block, which is nowhere else but in RAM.
    Only,
    /// A copy of what the slow tier has.
    Copy,
    /// The block, in a place that its whole 1 MiB has on the slow tier.
    Home,
    /// The block, packed with others on the slow tier, as its 1 MiB holds little.
    Packed,
}

impl CopyKind {
    /// Its name in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Only => "only",
            Self::Copy => "copy",
            Self::Home => "home",
            Self::Packed => "packed",
        }
    }
}

/// A place where a block lies.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockPlace {
    /// RAM, fast or slow.
    pub tier: Spot,
    /// Its state there.
    pub kind: CopyKind,
    /// The vdrive; none in RAM.
    pub vdrive: Option<u8>,
    /// The drives that have it, with offsets.
    pub drives: Vec<DrivePlace>,
    /// The move that placed it there, or a later merge of snapshots; none when the log does not go
    /// back that far.
    pub came: Option<MoveStatus>,
    /// Nanoseconds for which the log has all that could have.
    pub log_ns: u64,
}

/// How hot an extent is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExtentHeat {
    /// Times that hosts used it, bursts counted once; 15 stands for more, too.
    pub uses: u8,
    /// Bytes that hosts used of the same part of the pool since its last use, about.
    pub idle_bytes: u64,
    /// Uses to be expected while hosts use a block, for each block that it keeps on the fast tier.
    pub worth: f32,
    /// The value of data that recently left the fast tier.
    pub bar: f32,
    /// The value required for promotion; 0 while there is room.
    pub wanted: f32,
}

/// Where a block lies, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The block's first byte in the volume.
    pub offset: u64,
    /// Not written since a snapshot was taken, which shares it with the volume.
    pub inherited: bool,
    /// That snapshot, unless it was deleted.
    pub snapshot: Option<String>,
    /// Where it lies, the fastest first; nowhere when it is zeroes.
    pub places: Vec<BlockPlace>,
    /// How hot its extent is; none when no host used that since the pool was opened.
    pub heat: Option<ExtentHeat>,
    /// The last moves of its extent, the newest first: a few that concern RAM alone and a few others.
    pub moves: Vec<MoveStatus>,
    /// Nanoseconds for which the log has every move but those that concern RAM alone.
    pub log_ns: u64,
    /// That is: since the pool was opened.
    pub log_is_whole: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_reason_and_a_way_name_one_cause() {
        let mut seen = BTreeSet::new();
        for cause in Cause::ALL {
            let name = (cause.reason(), cause.from(), cause.to());
            assert!(seen.insert(name), "{name:?} twice");
        }
    }
}
