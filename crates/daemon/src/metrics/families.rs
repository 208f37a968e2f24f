//! Every metric, a row each. docs/metrics.md has the same ones.

use super::encoder::{Family, Kind};

macro_rules! families {
    ($($id:ident $kind:ident $name:literal $labels:ident $help:literal)*) => {
        $(pub const $id: Family = Family {
            name: $name,
            kind: Kind::$kind,
            labels: $labels,
            help: $help,
        };)*
        #[cfg(test)]
        const ALL: &[Family] = &[$($id),*];
    };
}

type Labels = &'static [&'static str];
const NONE: Labels = &[];
const VERSION: Labels = &["version"];
const JOB: Labels = &["kind", "state"];
const KIND: Labels = &["kind"];
const POOL: Labels = &["pool"];
const STATE: Labels = &["pool", "state"];
const PART: Labels = &["pool", "part"];
const TIER: Labels = &["pool", "tier"];
const MOVE: Labels = &["pool", "from", "to", "dropped", "reason"];
const VDRIVE: Labels = &["pool", "tier", "vdrive"];
const VDRIVE_STATE: Labels = &["pool", "tier", "vdrive", "state"];
const DRIVE: Labels = &["pool", "tier", "vdrive", "drive"];
const DRIVE_STATE: Labels = &["pool", "tier", "vdrive", "drive", "state"];
const PURPOSE: Labels = &["pool", "tier", "vdrive", "drive", "purpose"];
const VOLUME: Labels = &["pool", "volume"];
const GROUP: Labels = &["pool", "group"];
const VOLUME_TIER: Labels = &["pool", "volume", "tier"];
const EXPORT: Labels = &["pool", "volume", "export", "kind"];

families! {
    BUILD Info "convect_build" VERSION "The daemon that answers."
    UPTIME Gauge "convect_uptime_seconds" NONE "Time since the daemon was started."
    SCRAPE_TOOK Gauge "convect_scrape_duration_seconds" NONE "How long it took to gather these figures."
    REQUEST_MEMORY Gauge "convect_request_memory_bytes" NONE "What requests of hosts under way and answers that they have not read take, beyond what each connection has of its own."
    REQUEST_MEMORY_LIMIT Gauge "convect_request_memory_limit_bytes" NONE "What they may take."
    REQUESTS_WAITING Gauge "convect_requests_waiting" NONE "Requests that wait for memory."
    JOBS Gauge "convect_jobs" JOB "Jobs that run or are paused, and recently ended ones."
    JOBS_LEFT Gauge "convect_jobs_left_bytes" KIND "What jobs that have not ended have left to do."

    POOL_ABSENT Gauge "convect_pool_absent" POOL "1 for a pool that should be open and is not."
    POOL_STATE Gauge "convect_pool_state" STATE "1 for the state that the pool is in, 0 for the others."
    POOL_MESSAGES Gauge "convect_pool_messages" POOL "Sentences that the pool has for a person; 0 when all is well."
    POOL_CAPACITY Gauge "convect_pool_capacity_bytes" POOL "Usable bytes of all tiers."
    POOL_USED Gauge "convect_pool_used_bytes" POOL "What holds the only valid copy of something."
    POOL_RESERVED Gauge "convect_pool_reserved_bytes" POOL "What is promised to volumes and not written yet."
    POOL_OVERPROMISED Gauge "convect_pool_overpromised_bytes" POOL "What is stored or promised beyond what there is."
    POOL_PROMISED Gauge "convect_pool_promised_bytes" POOL "Sum of the volumes' sizes."
    POOL_VOLUMES Gauge "convect_pool_volumes" POOL "Volumes."
    POOL_SNAPSHOTS Gauge "convect_pool_snapshots" POOL "Snapshots."
    POOL_MAPS Gauge "convect_pool_map_memory_bytes" POOL "Memory for maps."
    POOL_HELD Gauge "convect_pool_promotion_held" POOL "1 while promotion is held by hand."
    POOL_BUDGET Gauge "convect_pool_promotion_budget_bytes" POOL "What promotion may write in a day, where a budget is set."
    POOL_BUDGET_LEFT Gauge "convect_pool_promotion_budget_left_bytes" POOL "What promotion may write at once; it pauses at 0."

    FILL_USED Gauge "convect_fill_used_bytes" PART "What is taken of a part of the pool that can fill."
    FILL_CAPACITY Gauge "convect_fill_capacity_bytes" PART "What there is room for in it."
    FILL_WARNING Gauge "convect_fill_warning_ratio" PART "The highest of the pool's warning levels that it reached; 0 for none."
    FILL_FULL Gauge "convect_fill_full_seconds" PART "Time until it is full at the pace of late; +Inf while it does not fill."

    TIER_CAPACITY Gauge "convect_tier_capacity_bytes" TIER "Usable bytes of a tier; of RAM, as much as it may have now."
    TIER_USED Gauge "convect_tier_used_bytes" TIER "What is in use of a tier."
    TIER_DIRTY Gauge "convect_tier_dirty_bytes" TIER "Data of the fast tier that is newer than its home or has none."
    TIER_SHADOW Gauge "convect_tier_shadow_bytes" TIER "Clean copies on the fast tier."

    POOL_READS Counter "convect_pool_reads" POOL "Reads of hosts that ended."
    POOL_WRITES Counter "convect_pool_writes" POOL "Writes of hosts that ended."
    POOL_FLUSHES Counter "convect_pool_flushes" POOL "Flushes of hosts that ended."
    POOL_READ Counter "convect_pool_read_bytes" POOL "What hosts read."
    POOL_WRITTEN Counter "convect_pool_written_bytes" POOL "What hosts wrote."
    POOL_READ_TIME Counter "convect_pool_read_seconds" POOL "Time spent in reads, summed."
    POOL_WRITE_TIME Counter "convect_pool_write_seconds" POOL "Time spent in writes, summed."
    POOL_SERVED Counter "convect_pool_served_bytes" TIER "Whole 4 KiB blocks that were read, by where from; none: never written."
    POOL_BYPASSED_READS Counter "convect_pool_bypassed_reads" POOL "Reads that placement did not hear of."
    POOL_BYPASSED_WRITES Counter "convect_pool_bypassed_writes" POOL "Writes that placement did not hear of."
    POOL_BYPASSED Counter "convect_pool_bypassed_bytes" POOL "Whole 4 KiB blocks that both were of."
    POOL_PROMOTED Counter "convect_pool_promoted_bytes" POOL "What was promoted to the fast tier."
    POOL_DEMOTED Counter "convect_pool_demoted_bytes" POOL "What was copied down to the slow tier."
    POOL_MOVES Counter "convect_pool_moves" MOVE "Moves of an extent or a part of one, by way and reason."
    POOL_MOVED Counter "convect_pool_moved_bytes" MOVE "What they moved, or the copies that they gave up."

    SCRUB_RUNNING Gauge "convect_scrub_running" POOL "1 while the pool is scrubbed."
    SCRUB_BEGAN Gauge "convect_scrub_start_time_seconds" POOL "When the scrub that runs, or the last one, began, since 1970; 0 for never."
    SCRUB_TOOK Gauge "convect_scrub_duration_seconds" POOL "How long it ran."
    SCRUB_READ Gauge "convect_scrub_read_bytes" POOL "What it read from drives."
    SCRUB_SIZE Gauge "convect_scrub_size_bytes" POOL "What there is to read, while it runs."
    SCRUB_CHECKED Gauge "convect_scrub_checked_copies" POOL "Copies of blocks and pages that it checked."
    SCRUB_BAD Gauge "convect_scrub_bad_copies" POOL "Copies that were not right."
    SCRUB_REPAIRED Gauge "convect_scrub_repaired_copies" POOL "Of those, copies that are right again."
    OPENING_LOST Gauge "convect_opening_lost_blocks" POOL "Blocks that openings found lost, until a whole scrub has ended."
    SCRUB_LOST Gauge "convect_scrub_lost_blocks" POOL "Blocks and pages of which no right copy is left."

    VDRIVE_STATES Gauge "convect_vdrive_state" VDRIVE_STATE "1 for the state that the vdrive is in, 0 for the others."
    VDRIVE_CAPACITY Gauge "convect_vdrive_capacity_bytes" VDRIVE "Usable bytes."
    VDRIVE_USED Gauge "convect_vdrive_used_bytes" VDRIVE "Bytes in use."

    DRIVE_STATES Gauge "convect_drive_state" DRIVE_STATE "1 for the state that the drive is in, 0 for the others."
    DRIVE_SIZE Gauge "convect_drive_size_bytes" DRIVE "Its size."
    DRIVE_READS Counter "convect_drive_reads" DRIVE "Reads that ended."
    DRIVE_WRITES Counter "convect_drive_writes" DRIVE "Writes that ended."
    DRIVE_READ Counter "convect_drive_read_bytes" DRIVE "What was read."
    DRIVE_WRITTEN Counter "convect_drive_written_bytes" DRIVE "What was written."
    DRIVE_READ_SPREAD Histogram "convect_drive_read_latency_seconds" DRIVE "How long its reads took; nothing where it answers out of memory."
    DRIVE_WRITE_SPREAD Histogram "convect_drive_write_latency_seconds" DRIVE "How long its writes took; nothing where it answers out of memory."
    DRIVE_ERRORS Counter "convect_drive_errors" DRIVE "Requests that failed."
    DRIVE_TIMEOUTS Counter "convect_drive_timeouts" DRIVE "Requests that it did not answer within the deadline."
    DRIVE_REPAIRED Counter "convect_drive_repaired_blocks" DRIVE "Blocks that were wrong and were mended from another leg."
    DRIVE_SLOW Gauge "convect_drive_slow" DRIVE "1 while it does not answer, or takes far longer than its usual time."
    DRIVE_SYNCED Gauge "convect_drive_synced_ratio" DRIVE "How much of what it lacks has been copied, while it is brought up to date."
    DRIVE_WEAR Gauge "convect_drive_wear_bytes" PURPOSE "What was written to it since it joined, by what for."

    DRIVE_FAILING Gauge "convect_drive_failing" DRIVE "1 while it says that it fails or is about to, 0 while it says that it is well."
    DRIVE_USED Gauge "convect_drive_endurance_used_ratio" DRIVE "What it means to have used of its endurance; may be more than 1."
    DRIVE_TEMPERATURE Gauge "convect_drive_temperature_celsius" DRIVE "Its temperature."
    DRIVE_ON Gauge "convect_drive_power_on_seconds" DRIVE "How long it was switched on, in whole hours."

    VOLUME_SIZE Gauge "convect_volume_size_bytes" VOLUME "Its size as hosts see it."
    VOLUME_MAPPED Gauge "convect_volume_mapped_bytes" VOLUME "What was written and not discarded."
    VOLUME_HELD Gauge "convect_volume_held_bytes" VOLUME "What it and its snapshots store."
    VOLUME_QUOTA Gauge "convect_volume_quota_bytes" VOLUME "The most that these may store, where a quota is set."
    VOLUME_RESERVED Gauge "convect_volume_reserved_bytes" VOLUME "What is kept for it and it does not store."
    VOLUME_FAST Gauge "convect_volume_fast_bytes" VOLUME "What it and its snapshots have on the fast tier."
    VOLUME_READS Counter "convect_volume_reads" VOLUME "Reads of hosts that ended."
    VOLUME_WRITES Counter "convect_volume_writes" VOLUME "Writes of hosts that ended."
    VOLUME_FLUSHES Counter "convect_volume_flushes" VOLUME "Flushes of hosts that ended."
    VOLUME_READ Counter "convect_volume_read_bytes" VOLUME "What hosts read."
    VOLUME_WRITTEN Counter "convect_volume_written_bytes" VOLUME "What hosts wrote."
    VOLUME_READ_TIME Counter "convect_volume_read_seconds" VOLUME "Time spent in reads, summed."
    VOLUME_WRITE_TIME Counter "convect_volume_write_seconds" VOLUME "Time spent in writes, summed."
    VOLUME_SERVED Counter "convect_volume_served_bytes" VOLUME_TIER "Whole 4 KiB blocks that were read, by where from; none: never written."

    VOLUME_QOS_LEVEL Gauge "convect_volume_qos_level" VOLUME "Service level of its quality-of-service policy, 1 to 5; nothing without a policy of its own, like those that follow."
    VOLUME_QOS_MIN_IOPS Gauge "convect_volume_qos_min_iops" VOLUME "Operations a second that it is guaranteed; 0 for none."
    VOLUME_QOS_MIN_BANDWIDTH Gauge "convect_volume_qos_min_bandwidth_bytes" VOLUME "Bytes a second that it is guaranteed; 0 for none."
    VOLUME_QOS_MAX_LATENCY Gauge "convect_volume_qos_max_latency_seconds" VOLUME "Time within which 99 of 100 operations are to end, where the policy says so."
    VOLUME_QOS_TIME Counter "convect_volume_qos_shard_seconds" VOLUME "Time of shards that its operations took, as it was charged for them."
    VOLUME_QOS_HELD Counter "convect_volume_qos_held" VOLUME "Operations that were held at the gate, for others or for its own maximum."
    VOLUME_QOS_LATE Counter "convect_volume_qos_late" VOLUME "Operations that took longer than the maximum latency of its policy."
    VOLUME_QOS_WINDOWS Counter "convect_volume_qos_windows" VOLUME "Windows of 100 ms in which it asked for what it was promised."
    VOLUME_QOS_MET Counter "convect_volume_qos_windows_met" VOLUME "Of them, those in which it got that."

    GROUP_QOS_VOLUMES Gauge "convect_group_qos_volumes" GROUP "Volumes of a group that share a quality-of-service policy; what follows is of all of them together."
    GROUP_QOS_LEVEL Gauge "convect_group_qos_level" GROUP "Service level of its policy, 1 to 5."
    GROUP_QOS_MIN_IOPS Gauge "convect_group_qos_min_iops" GROUP "Operations a second that it is guaranteed; 0 for none."
    GROUP_QOS_MIN_BANDWIDTH Gauge "convect_group_qos_min_bandwidth_bytes" GROUP "Bytes a second that it is guaranteed; 0 for none."
    GROUP_QOS_MAX_LATENCY Gauge "convect_group_qos_max_latency_seconds" GROUP "Time within which 99 of 100 operations are to end, where the policy says so."
    GROUP_QOS_TIME Counter "convect_group_qos_shard_seconds" GROUP "Time of shards that its operations took, as it was charged for them."
    GROUP_QOS_HELD Counter "convect_group_qos_held" GROUP "Operations that were held at the gate, for others or for its own maximum."
    GROUP_QOS_LATE Counter "convect_group_qos_late" GROUP "Operations that took longer than the maximum latency of its policy."
    GROUP_QOS_WINDOWS Counter "convect_group_qos_windows" GROUP "Windows of 100 ms in which it asked for what it was promised."
    GROUP_QOS_MET Counter "convect_group_qos_windows_met" GROUP "Of them, those in which it got that."

    VOLUME_READ_SPREAD Histogram "convect_volume_read_latency_seconds" VOLUME "How long reads of hosts took; those that are answered at once, by the mean of those that came together."
    VOLUME_WRITE_SPREAD Histogram "convect_volume_write_latency_seconds" VOLUME "How long writes of hosts took."
    VOLUME_SOURCE_TIMES Histogram "convect_volume_source_read_latency_seconds" VOLUME_TIER "How long reads took by where blocks came from: from memory by operations, from drives by stretches that lie together."
    VOLUME_READ_SIZES Histogram "convect_volume_read_size_bytes" VOLUME "How large reads of hosts were."
    VOLUME_WRITE_SIZES Histogram "convect_volume_write_size_bytes" VOLUME "How large writes of hosts were."

    EXPORT_UP Gauge "convect_export_up" EXPORT "1 when it is offered, 0 when it could not be started."
    EXPORT_SESSIONS Gauge "convect_export_sessions" EXPORT "Connected hosts."
    EXPORT_READS Counter "convect_export_reads" EXPORT "Reads that came by it and ended."
    EXPORT_WRITES Counter "convect_export_writes" EXPORT "Writes that came by it and ended."
    EXPORT_FLUSHES Counter "convect_export_flushes" EXPORT "Flushes that came by it and ended."
    EXPORT_READ Counter "convect_export_read_bytes" EXPORT "What was read by it."
    EXPORT_WRITTEN Counter "convect_export_written_bytes" EXPORT "What was written by it."
    EXPORT_READ_SPREAD Histogram "convect_export_read_latency_seconds" EXPORT "How long its reads took; those that are answered at once, by the mean of those that came together."
    EXPORT_WRITE_SPREAD Histogram "convect_export_write_latency_seconds" EXPORT "How long its writes took."
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_has_every_metric_with_its_labels_and_no_other() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let text = std::fs::read_to_string(path).unwrap();
        let told: BTreeSet<(String, String)> = text
            .lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix("| `convect_")?.split('|');
                let name = cells.next()?.trim().trim_end_matches('`');
                let labels = cells.nth(1)?.trim().replace('`', "");
                Some((format!("convect_{name}"), labels))
            })
            .collect();
        let known = ALL.iter();
        let known: BTreeSet<_> = known
            .map(|family| (family.sample(), family.labels.join(", ")))
            .collect();
        let wrong: Vec<_> = told.symmetric_difference(&known).collect();
        assert!(wrong.is_empty(), "only in one of them: {wrong:#?}");
    }

    #[test]
    fn every_row_is_as_the_formats_want_it() {
        let mut names = BTreeSet::new();
        for family in ALL {
            assert!(names.insert(family.name), "{} twice", family.name);
            let good = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(family.name.chars().all(good), "{}", family.name);
            let help = family.help;
            assert!(
                help.ends_with('.') && !help.contains(['"', '\\', '\n']),
                "{help}"
            );
        }
    }
}
