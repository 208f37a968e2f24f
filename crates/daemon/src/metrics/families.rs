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
    BUILD Info "convect_build" VERSION "Build information of the daemon."
    UPTIME Gauge "convect_uptime_seconds" NONE "Time since the daemon was started."
    SCRAPE_TOOK Gauge "convect_scrape_duration_seconds" NONE "Duration of this scrape."
    REQUEST_MEMORY Gauge "convect_request_memory_bytes" NONE "Memory of hosts' requests in flight and unread responses, beyond the fixed part of each connection."
    REQUEST_MEMORY_LIMIT Gauge "convect_request_memory_limit_bytes" NONE "Limit of that memory."
    REQUESTS_WAITING Gauge "convect_requests_waiting" NONE "Requests waiting for memory."
    JOBS Gauge "convect_jobs" JOB "Running, paused and recently finished jobs."
    JOBS_LEFT Gauge "convect_jobs_left_bytes" KIND "Remaining bytes of unfinished jobs."

    POOL_ABSENT Gauge "convect_pool_absent" POOL "1 for a pool that should be open but is not."
    POOL_STATE Gauge "convect_pool_state" STATE "1 for the present state of the pool, 0 for the others."
    POOL_MESSAGES Gauge "convect_pool_messages" POOL "Number of messages about the pool that need attention; 0 when healthy."
    POOL_CAPACITY Gauge "convect_pool_capacity_bytes" POOL "Usable bytes of all tiers."
    POOL_USED Gauge "convect_pool_used_bytes" POOL "Bytes that hold the only valid copy of data."
    POOL_RESERVED Gauge "convect_pool_reserved_bytes" POOL "Bytes reserved for volumes and not written yet."
    POOL_OVERPROMISED Gauge "convect_pool_overpromised_bytes" POOL "Stored and reserved bytes beyond the capacity."
    POOL_PROMISED Gauge "convect_pool_promised_bytes" POOL "Provisioned bytes: sum of the volumes' sizes."
    POOL_VOLUMES Gauge "convect_pool_volumes" POOL "Volumes."
    POOL_SNAPSHOTS Gauge "convect_pool_snapshots" POOL "Snapshots."
    POOL_MAPS Gauge "convect_pool_map_memory_bytes" POOL "Memory of the map page cache."
    POOL_HELD Gauge "convect_pool_promotion_held" POOL "1 while promotion is paused manually."
    POOL_BUDGET Gauge "convect_pool_promotion_budget_bytes" POOL "Promotion budget in bytes per day, if set."
    POOL_BUDGET_LEFT Gauge "convect_pool_promotion_budget_left_bytes" POOL "Bytes that promotion may write now; it pauses at 0."

    FILL_USED Gauge "convect_fill_used_bytes" PART "Used bytes of a part of the pool that can become full."
    FILL_CAPACITY Gauge "convect_fill_capacity_bytes" PART "Capacity of the part."
    FILL_WARNING Gauge "convect_fill_warning_ratio" PART "Highest warning level reached by the part; 0 for none."
    FILL_FULL Gauge "convect_fill_full_seconds" PART "Forecast time until the part is full at the recent rate; +Inf if it is not filling."

    TIER_CAPACITY Gauge "convect_tier_capacity_bytes" TIER "Usable bytes of a tier; of RAM, its present limit."
    TIER_USED Gauge "convect_tier_used_bytes" TIER "Used bytes of a tier."
    TIER_DIRTY Gauge "convect_tier_dirty_bytes" TIER "Dirty bytes: data on the fast tier that is not at its home location yet."
    TIER_SHADOW Gauge "convect_tier_shadow_bytes" TIER "Clean copies on the fast tier."

    POOL_READS Counter "convect_pool_reads" POOL "Completed reads of hosts."
    POOL_WRITES Counter "convect_pool_writes" POOL "Completed writes of hosts."
    POOL_FLUSHES Counter "convect_pool_flushes" POOL "Completed flushes of hosts."
    POOL_READ Counter "convect_pool_read_bytes" POOL "Bytes read by hosts."
    POOL_WRITTEN Counter "convect_pool_written_bytes" POOL "Bytes written by hosts."
    POOL_READ_TIME Counter "convect_pool_read_seconds" POOL "Sum of read latencies."
    POOL_WRITE_TIME Counter "convect_pool_write_seconds" POOL "Sum of write latencies."
    POOL_SERVED Counter "convect_pool_served_bytes" TIER "Bytes of 4 KiB blocks read, by the tier that served them; none: never written."
    POOL_BYPASSED_READS Counter "convect_pool_bypassed_reads" POOL "Reads that bypassed placement."
    POOL_BYPASSED_WRITES Counter "convect_pool_bypassed_writes" POOL "Writes that bypassed placement."
    POOL_BYPASSED Counter "convect_pool_bypassed_bytes" POOL "Bytes of 4 KiB blocks of bypassed reads and writes."
    POOL_PROMOTED Counter "convect_pool_promoted_bytes" POOL "Bytes promoted to the fast tier."
    POOL_DEMOTED Counter "convect_pool_demoted_bytes" POOL "Bytes demoted to the slow tier."
    POOL_MOVES Counter "convect_pool_moves" MOVE "Moves of extents or parts of them, by direction and reason."
    POOL_MOVED Counter "convect_pool_moved_bytes" MOVE "Bytes moved or dropped, by direction and reason."

    SCRUB_RUNNING Gauge "convect_scrub_running" POOL "1 while a scrub of the pool is running."
    SCRUB_BEGAN Gauge "convect_scrub_start_time_seconds" POOL "Start of the running or last scrub, in seconds since 1970; 0 for never."
    SCRUB_TOOK Gauge "convect_scrub_duration_seconds" POOL "Duration of the running or last scrub."
    SCRUB_READ Gauge "convect_scrub_read_bytes" POOL "Bytes read by the scrub."
    SCRUB_SIZE Gauge "convect_scrub_size_bytes" POOL "Bytes to be read by the running scrub."
    SCRUB_CHECKED Gauge "convect_scrub_checked_copies" POOL "Copies of blocks and pages verified by the scrub."
    SCRUB_BAD Gauge "convect_scrub_bad_copies" POOL "Corrupt copies found by the scrub."
    SCRUB_REPAIRED Gauge "convect_scrub_repaired_copies" POOL "Corrupt copies repaired by the scrub."
    OPENING_LOST Gauge "convect_opening_lost_blocks" POOL "Blocks found lost by recovery, until a complete scrub has finished."
    SCRUB_LOST Gauge "convect_scrub_lost_blocks" POOL "Blocks and pages without a correct copy."

    VDRIVE_STATES Gauge "convect_vdrive_state" VDRIVE_STATE "1 for the present state of the vdrive, 0 for the others."
    VDRIVE_CAPACITY Gauge "convect_vdrive_capacity_bytes" VDRIVE "Usable bytes of a vdrive."
    VDRIVE_USED Gauge "convect_vdrive_used_bytes" VDRIVE "Used bytes of a vdrive."

    DRIVE_STATES Gauge "convect_drive_state" DRIVE_STATE "1 for the present state of the drive, 0 for the others."
    DRIVE_SIZE Gauge "convect_drive_size_bytes" DRIVE "Size of the drive."
    DRIVE_READS Counter "convect_drive_reads" DRIVE "Completed reads of the drive."
    DRIVE_WRITES Counter "convect_drive_writes" DRIVE "Completed writes of the drive."
    DRIVE_READ Counter "convect_drive_read_bytes" DRIVE "Bytes read from the drive."
    DRIVE_WRITTEN Counter "convect_drive_written_bytes" DRIVE "Bytes written to the drive."
    DRIVE_READ_SPREAD Histogram "convect_drive_read_latency_seconds" DRIVE "Read latency of the drive; empty for drives in memory."
    DRIVE_WRITE_SPREAD Histogram "convect_drive_write_latency_seconds" DRIVE "Write latency of the drive; empty for drives in memory."
    DRIVE_ERRORS Counter "convect_drive_errors" DRIVE "Failed requests to the drive."
    DRIVE_TIMEOUTS Counter "convect_drive_timeouts" DRIVE "Requests that the drive did not complete within the deadline."
    DRIVE_REPAIRED Counter "convect_drive_repaired_blocks" DRIVE "Corrupt blocks that were repaired from another member."
    DRIVE_SLOW Gauge "convect_drive_slow" DRIVE "1 while the drive does not respond, or takes far longer than usual."
    DRIVE_SYNCED Gauge "convect_drive_synced_ratio" DRIVE "Progress of the resync of the drive."
    DRIVE_WEAR Gauge "convect_drive_wear_bytes" PURPOSE "Bytes written to the drive since it joined the pool, by purpose."

    DRIVE_FAILING Gauge "convect_drive_failing" DRIVE "1 if the drive reports a present or imminent failure, 0 if it reports good health."
    DRIVE_USED Gauge "convect_drive_endurance_used_ratio" DRIVE "Used endurance as reported by the drive; may exceed 1."
    DRIVE_TEMPERATURE Gauge "convect_drive_temperature_celsius" DRIVE "Temperature of the drive."
    DRIVE_ON Gauge "convect_drive_power_on_seconds" DRIVE "Power-on time of the drive, in whole hours."

    VOLUME_SIZE Gauge "convect_volume_size_bytes" VOLUME "Size of the volume."
    VOLUME_MAPPED Gauge "convect_volume_mapped_bytes" VOLUME "Bytes that were written and not discarded."
    VOLUME_HELD Gauge "convect_volume_held_bytes" VOLUME "Bytes stored by the volume and its snapshots."
    VOLUME_QUOTA Gauge "convect_volume_quota_bytes" VOLUME "Quota of the volume, if set."
    VOLUME_RESERVED Gauge "convect_volume_reserved_bytes" VOLUME "Unused bytes of the volume's reservation."
    VOLUME_FAST Gauge "convect_volume_fast_bytes" VOLUME "Bytes of the volume and its snapshots on the fast tier."
    VOLUME_READS Counter "convect_volume_reads" VOLUME "Completed reads of hosts."
    VOLUME_WRITES Counter "convect_volume_writes" VOLUME "Completed writes of hosts."
    VOLUME_FLUSHES Counter "convect_volume_flushes" VOLUME "Completed flushes of hosts."
    VOLUME_READ Counter "convect_volume_read_bytes" VOLUME "Bytes read by hosts."
    VOLUME_WRITTEN Counter "convect_volume_written_bytes" VOLUME "Bytes written by hosts."
    VOLUME_READ_TIME Counter "convect_volume_read_seconds" VOLUME "Sum of read latencies."
    VOLUME_WRITE_TIME Counter "convect_volume_write_seconds" VOLUME "Sum of write latencies."
    VOLUME_SERVED Counter "convect_volume_served_bytes" VOLUME_TIER "Bytes of 4 KiB blocks read, by the tier that served them; none: never written."

    VOLUME_QOS_LEVEL Gauge "convect_volume_qos_level" VOLUME "Level of the volume's own QoS policy, 1 to 5; absent without one, like the following."
    VOLUME_QOS_MIN_IOPS Gauge "convect_volume_qos_min_iops" VOLUME "Guaranteed IOPS; 0 for none."
    VOLUME_QOS_MIN_BANDWIDTH Gauge "convect_volume_qos_min_bandwidth_bytes" VOLUME "Guaranteed bytes per second; 0 for none."
    VOLUME_QOS_MAX_LATENCY Gauge "convect_volume_qos_max_latency_seconds" VOLUME "Maximum p99 latency of the policy, if set."
    VOLUME_QOS_TIME Counter "convect_volume_qos_shard_seconds" VOLUME "Shard time charged for operations of the volume."
    VOLUME_QOS_HELD Counter "convect_volume_qos_held" VOLUME "Operations queued at the QoS gate, in favour of others or because of the volume's maximum."
    VOLUME_QOS_LATE Counter "convect_volume_qos_late" VOLUME "Operations that exceeded the maximum latency of the policy."
    VOLUME_QOS_WINDOWS Counter "convect_volume_qos_windows" VOLUME "Windows of 100 ms in which the volume had demand for its minimum."
    VOLUME_QOS_MET Counter "convect_volume_qos_windows_met" VOLUME "Windows of these in which the minimum was met."

    GROUP_QOS_VOLUMES Gauge "convect_group_qos_volumes" GROUP "Volumes of a QoS group; the following metrics are sums over them."
    GROUP_QOS_LEVEL Gauge "convect_group_qos_level" GROUP "Level of the group's policy, 1 to 5."
    GROUP_QOS_MIN_IOPS Gauge "convect_group_qos_min_iops" GROUP "Guaranteed IOPS; 0 for none."
    GROUP_QOS_MIN_BANDWIDTH Gauge "convect_group_qos_min_bandwidth_bytes" GROUP "Guaranteed bytes per second; 0 for none."
    GROUP_QOS_MAX_LATENCY Gauge "convect_group_qos_max_latency_seconds" GROUP "Maximum p99 latency of the policy, if set."
    GROUP_QOS_TIME Counter "convect_group_qos_shard_seconds" GROUP "Shard time charged for operations of the group."
    GROUP_QOS_HELD Counter "convect_group_qos_held" GROUP "Operations queued at the QoS gate, in favour of others or because of the group's maximum."
    GROUP_QOS_LATE Counter "convect_group_qos_late" GROUP "Operations that exceeded the maximum latency of the policy."
    GROUP_QOS_WINDOWS Counter "convect_group_qos_windows" GROUP "Windows of 100 ms in which the group had demand for its minimum."
    GROUP_QOS_MET Counter "convect_group_qos_windows_met" GROUP "Windows of these in which the minimum was met."

    VOLUME_READ_SPREAD Histogram "convect_volume_read_latency_seconds" VOLUME "Read latency of hosts; of fast-path reads the mean of those that arrived together."
    VOLUME_WRITE_SPREAD Histogram "convect_volume_write_latency_seconds" VOLUME "Write latency of hosts."
    VOLUME_SOURCE_TIMES Histogram "convect_volume_source_read_latency_seconds" VOLUME_TIER "Read latency by tier: of RAM per operation, of drives per contiguous run of blocks."
    VOLUME_READ_SIZES Histogram "convect_volume_read_size_bytes" VOLUME "Sizes of hosts' reads."
    VOLUME_WRITE_SIZES Histogram "convect_volume_write_size_bytes" VOLUME "Sizes of hosts' writes."

    EXPORT_UP Gauge "convect_export_up" EXPORT "1 if the export is running, 0 if it could not be started."
    EXPORT_SESSIONS Gauge "convect_export_sessions" EXPORT "Connected hosts."
    EXPORT_READS Counter "convect_export_reads" EXPORT "Completed reads through the export."
    EXPORT_WRITES Counter "convect_export_writes" EXPORT "Completed writes through the export."
    EXPORT_FLUSHES Counter "convect_export_flushes" EXPORT "Completed flushes through the export."
    EXPORT_READ Counter "convect_export_read_bytes" EXPORT "Bytes read through the export."
    EXPORT_WRITTEN Counter "convect_export_written_bytes" EXPORT "Bytes written through the export."
    EXPORT_READ_SPREAD Histogram "convect_export_read_latency_seconds" EXPORT "Read latency of the export; of fast-path reads the mean of those that arrived together."
    EXPORT_WRITE_SPREAD Histogram "convect_export_write_latency_seconds" EXPORT "Write latency of the export."
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
