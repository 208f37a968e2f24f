//! QoS admission by tier: whether minimums that fit the demonstrated performance of the pool would
//! also fit if the working set were on the slow tier (docs/qos.md#admission). Pure functions.
//!
//! The performance that a pool has demonstrated is mostly that of its fast tier and RAM. The slow
//! tier is estimated from its drives: their peak rates in one second, and the rate implied by their
//! mean read latency at queue depth 1.

use api::v1::{QosPolicy, QosTier, Tier};
use engine::{PoolStatus, VdriveStatus};

/// Peak rates of the drives in one second.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Peak {
    /// Requests per second.
    pub iops: f32,
    /// Bytes per second.
    pub bandwidth: f32,
}

impl Peak {
    /// The maximum with another second.
    pub fn with(self, iops: f32, bandwidth: f32) -> Self {
        Self {
            iops: self.iops.max(iops),
            bandwidth: self.bandwidth.max(bandwidth),
        }
    }
}

/// Demonstrated performance of a tier; nothing where the pool has no drives in it.
pub fn tier(tier: Tier, pool: &PoolStatus, peak: Peak) -> Option<QosTier> {
    let of = match tier {
        Tier::Fast => engine::Tier::Fast,
        Tier::Slow => engine::Tier::Slow,
    };
    let vdrives = pool.vdrives.iter().filter(|vdrive| vdrive.tier == of);
    let drives: Vec<_> = vdrives
        .flat_map(|vdrive: &VdriveStatus| &vdrive.drives)
        .collect();
    let reads: u64 = drives.iter().map(|drive| drive.reads).sum();
    let ns: u64 = drives.iter().map(|drive| drive.read_ns).sum();
    let read_ns = ns.checked_div(reads).filter(|ns| *ns > 0);
    let count = drives.len() as u64;
    // Each drive completes at least this many reads per second at queue depth 1.
    let one_by_one = read_ns.map_or(0, |ns| count * 1_000_000_000 / ns);
    (count > 0).then_some(QosTier {
        tier,
        drives: count,
        iops: (peak.iops as u64).max(one_by_one),
        bandwidth: peak.bandwidth as u64,
        read_ns,
    })
}

/// Guaranteed operations of 4 KiB per second of a policy.
fn floor(policy: &QosPolicy) -> u64 {
    let by_bytes = policy.min_bandwidth.map(|bytes| bytes / 4096);
    match (policy.min_iops, by_bytes) {
        (Some(iops), Some(by_bytes)) => iops.min(by_bytes),
        (iops, by_bytes) => iops.or(by_bytes).unwrap_or(0),
    }
}

/// Why the minimums depend on the working set being on the fast tier; nothing where they do not.
pub fn needs_fast<'a>(
    tiers: &[QosTier],
    promised: impl Iterator<Item = &'a QosPolicy> + Clone,
) -> Option<String> {
    let slow = tiers.iter().find(|of| of.tier == Tier::Slow)?;
    tiers.iter().find(|of| of.tier == Tier::Fast)?;
    let floors: u64 = promised.clone().map(floor).sum();
    let mut why = Vec::new();
    if floors > slow.iops {
        why.push(match slow.iops {
            0 => format!(
                "of the {floors} guaranteed IOPS, the slow tier's share is unknown: it has not been measured yet"
            ),
            iops => format!(
                "of the {floors} guaranteed IOPS, the slow tier has demonstrated {iops}, with {} drives",
                slow.drives
            ),
        });
    }
    let shortest = promised.filter_map(|policy| Some((policy.max_latency_ns?, &policy.name)));
    if let (Some((latency_ns, name)), Some(read_ns)) = (shortest.min(), slow.read_ns)
        && latency_ns < read_ns
    {
        why.push(format!(
            "a read of one of its drives took {:.1} ms on average, longer than the {:.1} ms of \
             policy {name}",
            read_ns as f64 / 1e6,
            latency_ns as f64 / 1e6
        ));
    }
    (!why.is_empty()).then(|| {
        format!(
            "this holds only while the working set is on the fast tier or in RAM: {}",
            why.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(min_iops: Option<u64>, min_bandwidth: Option<u64>, latency_ms: u64) -> QosPolicy {
        QosPolicy {
            id: 100,
            name: "gold".to_owned(),
            built_in: false,
            level: 1,
            min_iops,
            min_bandwidth,
            max_iops: None,
            max_bandwidth: None,
            burst_s: None,
            max_latency_ns: Some(latency_ms * 1_000_000).filter(|ns| *ns > 0),
            weight: 100,
            reaction: api::v1::Reaction::Normal,
            fast_floor: None,
            ram_percent: None,
        }
    }

    fn tiers(slow_iops: u64, read_ms: u64) -> [QosTier; 2] {
        [(Tier::Fast, 100_000, 0), (Tier::Slow, slow_iops, read_ms)].map(|(tier, iops, read_ms)| {
            QosTier {
                tier,
                drives: 2,
                iops,
                bandwidth: 0,
                read_ns: Some(read_ms * 1_000_000).filter(|ns| *ns > 0),
            }
        })
    }

    #[test]
    fn floors_beyond_the_slow_tier_hold_only_while_the_working_set_is_fast() {
        let policies = [
            policy(Some(100), None, 0),
            policy(Some(500), Some(409_600), 0),
        ];
        let why = |slow_iops| needs_fast(&tiers(slow_iops, 5), policies.iter());
        // 100 operations each: the bandwidth limits those of the second policy.
        assert_eq!(why(200), None);
        let told = why(180).unwrap();
        assert!(
            told.contains("of the 200 guaranteed")
                && told.contains("demonstrated 180, with 2 drives")
        );
        assert!(why(0).unwrap().contains("has not been measured yet"));
        // A single tier makes no difference.
        assert_eq!(needs_fast(&tiers(1, 5)[1..], policies.iter()), None);
        assert_eq!(needs_fast(&tiers(0, 0), [].iter()), None);
    }

    #[test]
    fn latency_below_slow_tier_reads_holds_only_on_the_fast_tier() {
        let policies = [policy(None, None, 10), policy(None, None, 40)];
        let told = needs_fast(&tiers(0, 12), policies.iter()).unwrap();
        assert!(
            told.contains("took 12.0 ms") && told.contains("10.0 ms of policy gold"),
            "{told}"
        );
        assert_eq!(needs_fast(&tiers(0, 9), policies.iter()), None);
    }

    #[test]
    fn peak_is_the_maximum_of_seconds() {
        let peak = Peak::default().with(10.0, 5.0).with(3.0, 9.0);
        assert_eq!((peak.iops, peak.bandwidth), (10.0, 9.0));
    }
}
