//! Known bugs, reintroduced on purpose: the simulation has to find each of them.
//!
//! Only builds with debug assertions or the feature `mutations` can switch one on, for the calling thread: what tests
//! run in, and the simulation. In every other build, so in all that ships, [`is_on`] is false where it stands and costs
//! nothing.

macro_rules! mutations {
    ($($name:ident, $text:literal, $about:literal;)+) => {
        /// A bug.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Mutation {
            $(#[doc = $about] $name,)+
        }

        impl Mutation {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// As it is switched on by name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The fault while it is on.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)+ }
            }
        }
    };
}

mutations! {
    CheckpointBarrier, "checkpoint-without-barrier", "A checkpoint's record is written without a barrier before it.";
    CheckpointFlush, "checkpoint-without-flush", "A checkpoint's pages are not flushed before its record.";
    CheckpointOld, "checkpoint-oldest-taken", "Recovery takes the older of two valid checkpoints.";
    CheckpointOneLeg, "checkpoint-on-one-leg", "Recovery goes on from a record that one leg of a mirror has.";
    CheckpointPages, "checkpoint-frees-pages-early", "Pages that a checkpoint replaces are free before it is valid.";
    LeafForgotten, "changed-page-not-written", "A chunk's page that changes while a checkpoint runs is not written by the next.";
    JournalChecksum, "journal-checksum-unchecked", "A torn page of the journal is taken for whole.";
    JournalEpoch, "journal-epoch-unchecked", "Pages of the journal from before the last recovery are played again.";
    JournalSequence, "journal-order-unchecked", "Pages of the journal from an earlier lap are played again.";
    TailIgnored, "journal-tail-ignored", "An opening does not look at the journal's tail in memory.";
    TailLengthFirst, "journal-tail-length-first", "A page of the journal's tail says how long it is before it is.";
    TailUnnamed, "journal-tail-unnamed", "An opening uses a tail that its label does not name.";
    TailGoneEarly, "journal-tail-gone-early", "An opening gives up the old tail before its checkpoints make it void.";
    TailOfCopy, "journal-tail-of-copy", "An opening takes the tail of the drives that its own were copied from.";
    TailOlder, "journal-tail-knows-more", "An opening takes drives that are older than the journal's tail tells.";
    TailKept, "journal-tail-kept", "An opening leaves the tails of earlier ones in memory.";
    TailAhead, "journal-tail-epoch-ahead", "A tail says that it is of an epoch that has not begun.";
    TailMarkEarly, "journal-tail-mark-early", "The journal's tail says that it is durable before it is.";
    DurableMark, "durable-mark-too-high", "A page of the journal says that it is durable before it is.";
    Unverified, "unflushed-data-unverified", "Recovery believes records whose data may not have arrived.";
    HomeUnproven, "homes-believed", "Recovery believes records of homes though a write before them did not arrive.";
    RunWhole, "write-left-out-whole", "Recovery leaves out a whole write when one block of it is not in its slot any more.";
    KeptFree, "kept-space-left-free", "Recovery leaves out a write, and what its block keeps may count as free.";
    LeftOutUnchanged, "left-out-home-unchanged", "Recovery leaves out a record of a home, and does not hold it against what its chunk has.";
    EpochKept, "recovery-keeps-epoch", "Recovery goes on in the old epoch.";
    NoRecoveryCheckpoint, "serving-before-checkpoint", "Recovery writes no checkpoint before it serves.";
    FlushData, "flush-without-data", "A FLUSH flushes the journal and not the drives with the data.";
    FlushJournal, "flush-without-journal", "A FLUSH flushes the drives with the data and not the journal.";
    FlushNothing, "flush-answered-early", "A FLUSH is answered before it is done.";
    FlushLeg, "flush-forgets-leg", "A FLUSH of a mirror forgets its last leg.";
    FuaIgnored, "fua-ignored", "FUA is not made durable.";
    ReuseUndurable, "slot-reused-early", "Freed space is handed out at once, before the record that freed it is durable.";
    ReuseRead, "slot-reused-while-read", "Freed space is handed out while somebody reads it, who believes what comes.";
    HomeUnquiet, "home-written-too-soon", "A stale home is written while it may still be needed.";
    DemotionHoards, "demotion-hoards-room", "What sinks waits for room in the journal while it holds all that there is.";
    DemotionRace, "demotion-ignores-writes", "What sinks replaces what was written meanwhile.";
    PromotionRace, "promotion-ignores-writes", "What rises replaces what was written meanwhile.";
    LabelPlace, "label-place-needed", "A drive with one unreadable place of a label counts as unreadable.";
    DemotionSlot, "demotion-trusts-slots", "What sinks replaces what was written to the same slot meanwhile.";
    DemotionFlush, "demotion-without-flush", "What sinks counts as durable before it is flushed.";
    WriteKeepsHome, "write-keeps-home", "A written block still counts as valid at home.";
    TrimKeepsHome, "trim-keeps-home", "A trimmed block still counts as valid at home.";
    PartFreed, "discarded-part-frees-block", "A block of which part is zeroed is freed, whatever else it holds.";
    MergeRace, "merge-ignores-writes", "A write of part of a block overwrites what was written to the rest meanwhile.";
    RamStale, "ram-not-invalidated", "A write leaves the old content in RAM.";
    BitmapEnd, "bitmap-off-by-one", "A run of slots is marked one block short.";
    PendingKept, "bitmap-keeps-pending", "A checkpoint's bitmap has slots that no record names.";
    PendingForgotten, "bitmap-forgets-pending", "What was being written during a checkpoint is missing from every later bitmap.";
    CheckpointAlone, "checkpoint-without-label", "A checkpoint that a drive lacks is valid before a label tells that it does.";
    OpeningAlone, "opening-without-label", "What an opening makes valid does not wait for a label that tells which legs lack it.";
    LabelFlush, "label-without-flush", "A label is not flushed.";
    FlushOverlap, "flush-beside-failing-one", "A flush that succeeds is believed while another one of the same drive has still to fail.";
    LabelFlushAlone, "label-flush-alone", "That a label could not be flushed concerns nobody else who writes to the drive.";
    ReadUnchecked, "read-unchecked", "A read believes what a drive gives.";
    LegLast, "last-leg-served", "A read that mends a mirror serves what the last leg had.";
    FlushError, "flush-error-ignored", "A flush that failed counts as done.";
    TwinTaken, "copy-of-drive-taken", "A pool is opened with a drive and its copy.";
    LegBehind, "leg-behind-trusted", "A leg that was away is read as if it had all.";
    LongPart, "long-operation-skips-part", "A part of a long write is answered and not carried out.";
    CountOff, "overwrite-counted-twice", "A block that is written again is counted again.";
    PromiseTaken, "promise-taken", "Writes take space that other volumes were promised.";
    SnapshotUnheld, "snapshot-without-hold", "Shards take a snapshot one after the other while writes go on.";
    DigestKept, "digest-outlives-page", "What is in memory of a page that was given up is believed once the page is back.";
    AnnouncedLost, "announced-layer-lost", "An opening takes a layer for empty that was written to before a label named it.";
    SnapshotUnreserved, "snapshot-layer-unnamed", "A new layer takes writes before a label names it.";
    WriteBehind, "write-to-frozen-layer", "A write in flight goes to the layer that a snapshot has frozen.";
    ForkEarly, "fork-too-early", "Recovery makes pages of new layers before what is beneath is played.";
    ZeroesDropped, "zeroes-uncovered", "A page of zeroes is dropped though something lies beneath.";
    MergeLeaks, "merge-leaks", "What a merge replaces is not freed.";
    NodesUnnamed, "nodes-unnamed", "Nodes of a map are written anew and the directory tells of the old ones.";
    PagesUncounted, "pages-uncounted", "Pages are made and changed until a checkpoint has no room in the metadata region.";
    ScrubUnwritten, "scrub-reads-unwritten", "A scrub reads pages that a checkpoint has still to write.";
    OldTaken, "old-drive-taken", "A pool is opened with a drive that was restored to an earlier state, as if it were up to date.";
    ShortTaken, "short-drive-taken", "A pool is opened with a drive that lacks blocks.";
    LabelAtEnd, "label-at-present-end", "Labels are written at the present end of a drive, where data are.";
    MarksIgnored, "old-metadata-taken", "A pool is opened with metadata that was restored to an earlier state.";
    FailedLabelled, "failed-label-assumed", "The next label says of a drive that failed the last one that it has that.";
    OlderCounts, "older-member-counts", "A member of a mirror that was restored to an earlier state counts as up to date.";
    SeenIgnored, "seen-label-ignored", "A pool is opened from drives that are all older than what its host has seen.";
    OldForgotten, "old-drive-forgotten", "What was accepted though it is old is forgotten at the next opening.";
    LostOpened, "opened-without-lost", "A pool is opened without a drive whose data no other drive has.";
    OldUnsaid, "old-drive-not-told", "What is accepted though it is old is not noted in the labels.";
    OpeningUnflushed, "opening-without-flush", "An opening takes labels for durable that a killed engine did not flush.";
    MergeForgotten, "merge-without-checkpoint", "A merged layer leaves the label while the journal still tells of it.";
    BusyShared, "background-work-together", "Two pieces of background work have one chunk at the same time.";
    EvacuationRace, "evacuation-ignores-writes", "What leaves a vdrive replaces what was written meanwhile.";
    MovedUnflushed, "moved-home-unflushed", "A home that moved counts before it is flushed.";
    PromotionHome, "promotion-trusts-homes", "What rises replaces what was written, and sank to the same home, meanwhile.";
    MergeRam, "merge-keeps-ram", "A merge leaves what the lower page had in RAM.";
    RamUnproven, "ram-keeps-what-was-read", "RAM takes what was read though it was written meanwhile.";
    ReadDissolved, "read-of-merged-page", "A read goes by a page that was merged while it waited.";
    GateFirst, "resync-gate-open-at-first", "A write to the first block of what is being copied to a leg does not wait.";
    GateUndrained, "resync-ignores-writes-under-way", "The resync of a member does not wait for writes in flight.";
    ResyncUnsettled, "resync-begins-unsettled", "A member returns while writes that leave it out are in flight.";
    AbsentUnnoted, "unflushed-not-noted", "What was not flushed when a leg went out is not noted for it.";
    BarrierAlone, "barrier-without-label", "A barrier that relies on a leg's absence does not wait for a label that tells of it.";
    TrimBusy, "discard-drops-busy-home", "A discard gives up a home that is being written.";
    FreeBusy, "deletion-ignores-work", "A layer's chunks are freed while background work has them.";
    ZeroRace, "zeroing-ignores-writes", "A block of which part is zeroed is freed, whatever was written to it meanwhile.";
    HomeValid, "demotion-writes-valid-homes", "What sinks goes over what was valid at home until a moment ago, and may be needed.";
    ScrubUnguarded, "scrub-without-guard", "A scrub reads and mends without keeping freed space back.";
    EvacuatedEarly, "vdrive-leaves-early", "A vdrive leaves though something is left on it.";
    OrphansKept, "merged-layer-named", "Layers still stand on one that was merged.";
    ReceiveChanged, "receive-onto-changed", "A difference is received onto a volume that was written to since.";
    ReceiveAny, "receive-onto-another", "A difference is received onto any snapshot.";
    ReservationLost, "reservation-unsaved", "A reservation is answered and not kept.";
    PromoteUnclaimed, "promotion-unclaimed", "A clone is promoted beyond quotas and reservations.";
    HoldersUntold, "promotion-untold", "Shards are not told whose data is whose after a promotion.";
    QuotaIgnored, "quota-ignored", "Writes are not counted against a volume's quota.";
    QuotaBelow, "quota-below-held", "A quota that is less than a volume holds already is taken.";
    PromoteNewest, "promotion-of-newest-alone", "A clone takes over its origin and none of the snapshots before it.";
    ReceiveLingers, "receive-never-ends", "The label still tells of what was received once its snapshot is there.";
    TrimLeaks, "discard-leaks", "A discard does not free the slots of what it unmaps.";
    ResyncJournal, "resync-without-journal", "A returning leg does not get the journal and the records of checkpoints.";
    ResyncRegion, "resync-skips-region", "Of the regions that a returning leg lacks some are not copied.";
    SyncingRead, "syncing-leg-read", "A member is read while it is being resynced.";
    StaleUnnoted, "absent-leg-unnoted", "Of what is written while a leg is out some regions are not noted for it.";
    TurnUndue, "turns-ignore-policies", "Reads take turns at a drive whatever their volumes were promised.";
    RoomUndue, "room-ignores-policies", "Writes wait for room whatever their volumes were promised.";
    UpkeepUndue, "background-ignores-policies", "Background work goes on as ever while somebody misses what was promised.";
    PolicyUnsaved, "policy-not-saved", "A volume's policy is not written to the labels.";
    PlacementUndue, "placement-ignores-policies", "What is kept fast goes by no policy.";
    ScrubStill, "scrub-trusts-what-it-saw", "A scrub expects what a page said before it was changed.";
    QosTagKept, "qos-tag-kept", "A volume that was idle goes before others until it has what it did not ask for.";
    QosLevelsFlat, "qos-levels-flat", "Where minimums do not fit, all levels lose the same part.";
    QosWholeFloor, "qos-whole-floor", "Each shard gives a volume the whole of its minimum.";
    QosSizeBlind, "qos-size-blind", "A large operation is charged as a small one.";
    QosRestKept, "qos-rest-kept", "A volume that reached its maximum is not looked at again.";
    QosHeldUncounted, "qos-held-uncounted", "Operations that were held do not count against the maximum.";
    QosWindowLeaks, "qos-window-leaks", "Discards that ended still count as in flight.";
    QosNothingKept, "qos-nothing-kept", "Where minimums do not fit, the last levels get nothing.";
    QosNewestFirst, "qos-newest-first", "Of a volume's held operations the newest goes on first.";
    QosDebtKept, "qos-debt-kept", "A volume whose share grows waits as if it were still small.";
    QosLateTicks, "qos-late-ticks", "Ticks end while operations are held.";
    QosPacedNever, "qos-paced-never", "Nobody is paced for a volume that misses its minimum.";
    QosPacedForEver, "qos-paced-for-ever", "Others stay paced when nobody misses a minimum any more.";
    QosPacedForNothing, "qos-paced-for-nothing", "Others stay paced though nobody gains by it.";
    QosPacedAll, "qos-paced-all", "Whoever others are paced for is paced with them.";
    QosPacedLate, "qos-paced-late", "Virtual time of the paced goes on with what is exempt.";
}

#[cfg(any(debug_assertions, feature = "mutations"))]
thread_local! {
    static ON: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Switches a bug on for the calling thread, or all off.
#[cfg(any(debug_assertions, feature = "mutations"))]
pub fn switch(mutation: Option<Mutation>) {
    ON.set(mutation);
}

/// Whether this bug is on.
#[cfg(any(debug_assertions, feature = "mutations"))]
#[inline]
pub fn is_on(mutation: Mutation) -> bool {
    ON.get() == Some(mutation)
}

/// Whether this bug is on: never, in this build.
#[cfg(not(any(debug_assertions, feature = "mutations")))]
#[inline(always)]
pub fn is_on(_: Mutation) -> bool {
    false
}
