//! All metrics, one row each; docs/metrics.md lists the same.

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
    BUILD Info "convect_build" VERSION "Version of the daemon."
    UPTIME Gauge "convect_uptime_seconds" NONE "Time since the daemon was started."
    SCRAPE_TOOK Gauge "convect_scrape_duration_seconds" NONE "Time that it took to gather these metrics."
    REQUEST_MEMORY Gauge "convect_request_memory_bytes" NONE "Memory of host requests in flight and of unread answers, beyond the share of each connection."
    REQUEST_MEMORY_LIMIT Gauge "convect_request_memory_limit_bytes" NONE "Limit of that memory."
    REQUESTS_WAITING Gauge "convect_requests_waiting" NONE "Requests that wait for memory."
    JOBS Gauge "convect_jobs" JOB "Jobs that are running or paused, and recently ended ones."
    JOBS_LEFT Gauge "convect_jobs_left_bytes" KIND "Remaining work of jobs that have not ended."

    POOL_ABSENT Gauge "convect_pool_absent" POOL "1 for a pool that should be open and is not."
    POOL_STATE Gauge "convect_pool_state" STATE "1 for the pool's current state, 0 for the others."
    POOL_MESSAGES Gauge "convect_pool_messages" POOL "Messages of the pool that need attention; 0 when all is well."
    POOL_SURVIVES Gauge "convect_pool_survives_failures" POOL "Drive failures that all of its data survives now."
    POOL_CAPACITY Gauge "convect_pool_capacity_bytes" POOL "Usable bytes of all tiers."
    POOL_USED Gauge "convect_pool_used_bytes" POOL "Bytes stored, without clean copies."
    POOL_RESERVED Gauge "convect_pool_reserved_bytes" POOL "Space reserved for volumes and not used yet."
    POOL_OVERPROMISED Gauge "convect_pool_overpromised_bytes" POOL "Stored and reserved bytes beyond the capacity."
    POOL_PROMISED Gauge "convect_pool_promised_bytes" POOL "Provisioned space: sum of the volumes' sizes."
    POOL_VOLUMES Gauge "convect_pool_volumes" POOL "Volumes."
    POOL_SNAPSHOTS Gauge "convect_pool_snapshots" POOL "Snapshots."
    POOL_MAPS Gauge "convect_pool_map_memory_bytes" POOL "Memory used by maps."
    POOL_HELD Gauge "convect_pool_promotion_held" POOL "1 while promotion is paused by hand."
    POOL_BUDGET Gauge "convect_pool_promotion_budget_bytes" POOL "Bytes a day that promotion may write, where a budget is set."
    POOL_BUDGET_LEFT Gauge "convect_pool_promotion_budget_left_bytes" POOL "Bytes that promotion may write now; it pauses at 0."

    FILL_USED Gauge "convect_fill_used_bytes" PART "Used bytes of a part of the pool."
    FILL_CAPACITY Gauge "convect_fill_capacity_bytes" PART "Its capacity."
    FILL_WARNING Gauge "convect_fill_warning_ratio" PART "Highest warning level that it has reached; 0 for none."
    FILL_FULL Gauge "convect_fill_full_seconds" PART "Time until it is full at the recent rate; +Inf while it does not fill."

    TIER_CAPACITY Gauge "convect_tier_capacity_bytes" TIER "Usable bytes of a tier; for RAM, its current limit."
    TIER_USED Gauge "convect_tier_used_bytes" TIER "Used bytes of a tier."
    TIER_DIRTY Gauge "convect_tier_dirty_bytes" TIER "Dirty data on the fast tier."
    TIER_SHADOW Gauge "convect_tier_shadow_bytes" TIER "Clean copies on the fast tier."

    POOL_READS Counter "convect_pool_reads" POOL "Completed host reads."
    POOL_WRITES Counter "convect_pool_writes" POOL "Completed host writes."
    POOL_FLUSHES Counter "convect_pool_flushes" POOL "Completed host flushes."
    POOL_READ Counter "convect_pool_read_bytes" POOL "Bytes that hosts read."
    POOL_WRITTEN Counter "convect_pool_written_bytes" POOL "Bytes that hosts wrote."
    POOL_READ_TIME Counter "convect_pool_read_seconds" POOL "Sum of the latencies of reads."
    POOL_WRITE_TIME Counter "convect_pool_write_seconds" POOL "Sum of the latencies of writes."
    POOL_SERVED Counter "convect_pool_served_bytes" TIER "Bytes read in whole 4 KiB blocks, by source; none: never written."
    POOL_BYPASSED_READS Counter "convect_pool_bypassed_reads" POOL "Reads that bypassed placement."
    POOL_BYPASSED_WRITES Counter "convect_pool_bypassed_writes" POOL "Writes that bypassed placement."
    POOL_BYPASSED Counter "convect_pool_bypassed_bytes" POOL "Bytes of both, in whole 4 KiB blocks."
    POOL_PROMOTED Counter "convect_pool_promoted_bytes" POOL "Bytes promoted to the fast tier."
    POOL_DEMOTED Counter "convect_pool_demoted_bytes" POOL "Bytes demoted to the slow tier."
    POOL_MOVES Counter "convect_pool_moves" MOVE "Moves of extents or parts of extents, by direction and reason."
    POOL_MOVED Counter "convect_pool_moved_bytes" MOVE "Bytes that they moved, or whose copies they evicted."

    SCRUB_RUNNING Gauge "convect_scrub_running" POOL "1 while a scrub is running."
    SCRUB_BEGAN Gauge "convect_scrub_start_time_seconds" POOL "Start of the running or the last scrub, since 1970; 0 for never."
    SCRUB_TOOK Gauge "convect_scrub_duration_seconds" POOL "Its duration."
    SCRUB_READ Gauge "convect_scrub_read_bytes" POOL "Bytes that it read from drives."
    SCRUB_SIZE Gauge "convect_scrub_size_bytes" POOL "Bytes to be read, while it is running."
    SCRUB_CHECKED Gauge "convect_scrub_checked_copies" POOL "Copies of blocks and pages that it verified."
    SCRUB_BAD Gauge "convect_scrub_bad_copies" POOL "Copies that were wrong."
    SCRUB_REPAIRED Gauge "convect_scrub_repaired_copies" POOL "Wrong copies that were repaired."
    OPENING_LOST Gauge "convect_opening_lost_blocks" POOL "Blocks that were found lost when the pool was opened, until a complete scrub has ended."
    SCRUB_LOST Gauge "convect_scrub_lost_blocks" POOL "Blocks and pages without any good copy."

    VDRIVE_STATES Gauge "convect_vdrive_state" VDRIVE_STATE "1 for the vdrive's current state, 0 for the others."
    VDRIVE_SURVIVES Gauge "convect_vdrive_survives_failures" VDRIVE "Failures of its drives that its data survives now."
    VDRIVE_CAPACITY Gauge "convect_vdrive_capacity_bytes" VDRIVE "Usable bytes."
    VDRIVE_USED Gauge "convect_vdrive_used_bytes" VDRIVE "Used bytes."

    DRIVE_STATES Gauge "convect_drive_state" DRIVE_STATE "1 for the drive's current state, 0 for the others."
    DRIVE_SIZE Gauge "convect_drive_size_bytes" DRIVE "Size."
    DRIVE_READS Counter "convect_drive_reads" DRIVE "Completed reads."
    DRIVE_WRITES Counter "convect_drive_writes" DRIVE "Completed writes."
    DRIVE_READ Counter "convect_drive_read_bytes" DRIVE "Bytes read."
    DRIVE_WRITTEN Counter "convect_drive_written_bytes" DRIVE "Bytes written."
    DRIVE_READ_SPREAD Histogram "convect_drive_read_latency_seconds" DRIVE "Latency of reads; empty for drives in memory."
    DRIVE_WRITE_SPREAD Histogram "convect_drive_write_latency_seconds" DRIVE "Latency of writes; empty for drives in memory."
    DRIVE_ERRORS Counter "convect_drive_errors" DRIVE "Failed requests."
    DRIVE_TIMEOUTS Counter "convect_drive_timeouts" DRIVE "Requests that were not answered within the deadline."
    DRIVE_REPAIRED Counter "convect_drive_repaired_blocks" DRIVE "Wrong blocks that were repaired from another member."
    DRIVE_SLOW Gauge "convect_drive_slow" DRIVE "1 while it does not answer, or is far slower than usual."
    DRIVE_SYNCED Gauge "convect_drive_synced_ratio" DRIVE "Progress of its resync."
    DRIVE_WEAR Gauge "convect_drive_wear_bytes" PURPOSE "Bytes written to it since it joined, by purpose."

    DRIVE_FAILING Gauge "convect_drive_failing" DRIVE "1 while it reports that it is failing or about to fail, 0 while it reports that it is healthy."
    DRIVE_USED Gauge "convect_drive_endurance_used_ratio" DRIVE "Used endurance by its own estimate; may be more than 1."
    DRIVE_TEMPERATURE Gauge "convect_drive_temperature_celsius" DRIVE "Temperature."
    DRIVE_ON Gauge "convect_drive_power_on_seconds" DRIVE "Power-on time, in whole hours."

    VOLUME_SIZE Gauge "convect_volume_size_bytes" VOLUME "Size as seen by hosts."
    VOLUME_MAPPED Gauge "convect_volume_mapped_bytes" VOLUME "Bytes written and not discarded."
    VOLUME_HELD Gauge "convect_volume_held_bytes" VOLUME "Bytes that it and its snapshots store."
    VOLUME_QUOTA Gauge "convect_volume_quota_bytes" VOLUME "Quota of the stored bytes, where one is set."
    VOLUME_RESERVED Gauge "convect_volume_reserved_bytes" VOLUME "Space that is reserved for it and not used."
    VOLUME_FAST Gauge "convect_volume_fast_bytes" VOLUME "Bytes of it and its snapshots on the fast tier."
    VOLUME_READS Counter "convect_volume_reads" VOLUME "Completed host reads."
    VOLUME_WRITES Counter "convect_volume_writes" VOLUME "Completed host writes."
    VOLUME_FLUSHES Counter "convect_volume_flushes" VOLUME "Completed host flushes."
    VOLUME_READ Counter "convect_volume_read_bytes" VOLUME "Bytes that hosts read."
    VOLUME_WRITTEN Counter "convect_volume_written_bytes" VOLUME "Bytes that hosts wrote."
    VOLUME_READ_TIME Counter "convect_volume_read_seconds" VOLUME "Sum of the latencies of reads."
    VOLUME_WRITE_TIME Counter "convect_volume_write_seconds" VOLUME "Sum of the latencies of writes."
    VOLUME_SERVED Counter "convect_volume_served_bytes" VOLUME_TIER "Bytes read in whole 4 KiB blocks, by source; none: never written."

    VOLUME_QOS_LEVEL Gauge "convect_volume_qos_level" VOLUME "Level of its quality-of-service policy, 1 to 5; missing for volumes without a policy of their own, as are the following ones."
    VOLUME_QOS_MIN_IOPS Gauge "convect_volume_qos_min_iops" VOLUME "Guaranteed operations per second; 0 for none."
    VOLUME_QOS_MIN_BANDWIDTH Gauge "convect_volume_qos_min_bandwidth_bytes" VOLUME "Guaranteed bytes per second; 0 for none."
    VOLUME_QOS_MAX_LATENCY Gauge "convect_volume_qos_max_latency_seconds" VOLUME "Maximum latency of 99 of 100 operations, where the policy has one."
    VOLUME_QOS_TIME Counter "convect_volume_qos_shard_seconds" VOLUME "Shard time charged for its operations."
    VOLUME_QOS_HELD Counter "convect_volume_qos_held" VOLUME "Operations that were queued at the gate, because of others or its own maximum."
    VOLUME_QOS_LATE Counter "convect_volume_qos_late" VOLUME "Operations that exceeded the maximum latency of its policy."
    VOLUME_QOS_WINDOWS Counter "convect_volume_qos_windows" VOLUME "Windows of 100 ms in which it needed its guarantee."
    VOLUME_QOS_MET Counter "convect_volume_qos_windows_met" VOLUME "Windows in which the guarantee was met."

    GROUP_QOS_VOLUMES Gauge "convect_group_qos_volumes" GROUP "Volumes of a group that share a quality-of-service policy; the following metrics are for all of them together."
    GROUP_QOS_LEVEL Gauge "convect_group_qos_level" GROUP "Level of its policy, 1 to 5."
    GROUP_QOS_MIN_IOPS Gauge "convect_group_qos_min_iops" GROUP "Guaranteed operations per second; 0 for none."
    GROUP_QOS_MIN_BANDWIDTH Gauge "convect_group_qos_min_bandwidth_bytes" GROUP "Guaranteed bytes per second; 0 for none."
    GROUP_QOS_MAX_LATENCY Gauge "convect_group_qos_max_latency_seconds" GROUP "Maximum latency of 99 of 100 operations, where the policy has one."
    GROUP_QOS_TIME Counter "convect_group_qos_shard_seconds" GROUP "Shard time charged for its operations."
    GROUP_QOS_HELD Counter "convect_group_qos_held" GROUP "Operations that were queued at the gate, because of others or its own maximum."
    GROUP_QOS_LATE Counter "convect_group_qos_late" GROUP "Operations that exceeded the maximum latency of its policy."
    GROUP_QOS_WINDOWS Counter "convect_group_qos_windows" GROUP "Windows of 100 ms in which it needed its guarantee."
    GROUP_QOS_MET Counter "convect_group_qos_windows_met" GROUP "Windows in which the guarantee was met."

    VOLUME_READ_SPREAD Histogram "convect_volume_read_latency_seconds" VOLUME "Latency of host reads; reads that complete at once count with the mean of their batch."
    VOLUME_WRITE_SPREAD Histogram "convect_volume_write_latency_seconds" VOLUME "Latency of host writes."
    VOLUME_SOURCE_TIMES Histogram "convect_volume_source_read_latency_seconds" VOLUME_TIER "Latency of reads by source: per operation from memory, per contiguous run from drives."
    VOLUME_READ_SIZES Histogram "convect_volume_read_size_bytes" VOLUME "Sizes of host reads."
    VOLUME_WRITE_SIZES Histogram "convect_volume_write_size_bytes" VOLUME "Sizes of host writes."

    EXPORT_UP Gauge "convect_export_up" EXPORT "1 when it is offered, 0 when it could not be started or is disabled."
    EXPORT_DISABLED Gauge "convect_export_disabled" EXPORT "1 when a user disabled it, 0 otherwise."
    EXPORT_SESSIONS Gauge "convect_export_sessions" EXPORT "Connected hosts."
    EXPORT_READS Counter "convect_export_reads" EXPORT "Completed reads through it."
    EXPORT_WRITES Counter "convect_export_writes" EXPORT "Completed writes through it."
    EXPORT_FLUSHES Counter "convect_export_flushes" EXPORT "Completed flushes through it."
    EXPORT_READ Counter "convect_export_read_bytes" EXPORT "Bytes read through it."
    EXPORT_WRITTEN Counter "convect_export_written_bytes" EXPORT "Bytes written through it."
    EXPORT_READ_SPREAD Histogram "convect_export_read_latency_seconds" EXPORT "Latency of reads; reads that complete at once count with the mean of their batch."
    EXPORT_WRITE_SPREAD Histogram "convect_export_write_latency_seconds" EXPORT "Latency of writes."
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn documentation_lists_every_metric_with_its_labels() {
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
    fn every_row_is_valid_in_both_formats() {
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
