//! A tenant: a volume with a policy, or a group of volumes that share one, as all shards of its pool know it.

use super::costs::rate;
use super::service::Service;
use format::QosPolicyConfig;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The least that a maximum lets pass at once, in nanoseconds' worth: what a gate's tick brings in.
const BURST_LEAST_NS: u64 = 25_000_000;
const SECOND: u64 = 1_000_000_000;

/// A limit of units a second over all shards: the generic cell rate algorithm, whose state is one moment.
#[derive(Debug, Default)]
struct Limit {
    /// Units a second; 0: no limit.
    rate: u64,
    burst_ns: u64,
    /// When the units that were taken would all have come in.
    paid_ns: AtomicU64,
}

impl Limit {
    fn new(rate: u64, burst_s: u32) -> Self {
        Self {
            rate,
            burst_ns: (u64::from(burst_s) * SECOND).max(BURST_LEAST_NS),
            paid_ns: AtomicU64::new(0),
        }
    }

    /// Whether something may pass now. Two shards may ask at one moment, and one operation each be too many:
    /// what they take is counted all the same.
    fn allows(&self, now_ns: u64) -> bool {
        self.rate == 0 || self.paid_ns.load(Ordering::Relaxed) <= now_ns + self.burst_ns
    }

    fn take(&self, units: u64, now_ns: u64) {
        if self.rate == 0 {
            return;
        }
        let takes = u128::from(units) * u128::from(SECOND) / u128::from(self.rate);
        let takes = u64::try_from(takes).unwrap_or(u64::MAX / 4);
        let paid = |paid: u64| Some(paid.max(now_ns).saturating_add(takes));
        let updated = self
            .paid_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid);
        debug_assert!(updated.is_ok(), "it always has a next value");
    }
}

/// A volume with a policy, or a group of them. Another one takes its place when the policy's figures change.
#[derive(Debug)]
pub struct Tenant {
    /// Number of the group; 0: a volume for itself.
    group: u32,
    policy: QosPolicyConfig,
    operations: Limit,
    bytes: Limit,
    service: Mutex<Service>,
}

impl Tenant {
    /// A volume of a pool with so many shards.
    pub fn new(policy: QosPolicyConfig, shards: usize) -> Self {
        Self {
            group: 0,
            operations: Limit::new(policy.max_iops, policy.burst_s),
            bytes: Limit::new(policy.max_bandwidth, policy.burst_s),
            service: Mutex::new(Service::new(shards)),
            policy,
        }
    }

    /// A group of volumes with this number, which is that of no volume, in the same way.
    pub fn of_group(group: u32, policy: QosPolicyConfig, shards: usize) -> Self {
        Self {
            group,
            ..Self::new(policy, shards)
        }
    }

    /// Number of the group; 0: a volume for itself.
    pub fn group(&self) -> u32 {
        self.group
    }

    /// What it was promised.
    pub fn policy(&self) -> &QosPolicyConfig {
        &self.policy
    }

    /// Whether it has a maximum.
    pub fn is_capped(&self) -> bool {
        self.policy.max_iops > 0 || self.policy.max_bandwidth > 0
    }

    /// Whether its maximums let an operation pass now.
    pub fn allows(&self, now_ns: u64) -> bool {
        self.operations.allows(now_ns) && self.bytes.allows(now_ns)
    }

    /// Counts an operation against its maximums.
    pub fn take(&self, bytes: u64, now_ns: u64) {
        self.operations.take(1, now_ns);
        self.bytes.take(bytes, now_ns);
    }

    /// Operations a second that it is guaranteed, where each has `bytes`; 0 for none.
    pub fn floor(&self, bytes: u64) -> f64 {
        rate(self.policy.min_iops, self.policy.min_bandwidth, bytes)
    }

    /// What it attained. Gates ask once a tick, and status calls: it is never locked for an operation.
    pub fn service(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capped(max_iops: u64, max_bandwidth: u64, burst_s: u32) -> Tenant {
        let first = format::built_in_policies().next().unwrap();
        let policy = QosPolicyConfig {
            max_iops,
            max_bandwidth,
            burst_s,
            ..first
        };
        Tenant::new(policy, 1)
    }

    /// Operations that pass in `ms` milliseconds, when one is asked for every 10 µs, from `start_ms` on.
    fn passed(tenant: &Tenant, start_ms: u64, ms: u64, bytes: u64) -> u64 {
        let moments = (0..ms * 100).map(|at| start_ms * 1_000_000 + at * 10_000);
        let allowed = moments.filter(|now| {
            let allows = tenant.allows(*now);
            if allows {
                tenant.take(bytes, *now);
            }
            allows
        });
        allowed.count() as u64
    }

    #[test]
    fn maximums_hold_over_time() {
        let tenant = capped(1000, 0, 0);
        let got = passed(&tenant, 1000, 10_000, 4096);
        assert!((10_000..=10_026).contains(&got), "{got}");
        let tenant = capped(0, 4096 * 500, 0);
        let got = passed(&tenant, 1000, 10_000, 8192);
        assert!((2500..=2514).contains(&got), "{got}");
        assert_eq!(passed(&capped(0, 0, 0), 0, 100, 4096), 10_000);
    }

    #[test]
    fn bursts_are_what_was_saved_up() {
        let tenant = capped(1000, 0, 2);
        let got = passed(&tenant, 10_000, 1000, 4096);
        assert!((2990..=3001).contains(&got), "{got}");
        let got = passed(&tenant, 11_000, 1000, 4096);
        assert!((990..=1001).contains(&got), "{got}");
    }

    #[test]
    fn a_floor_is_by_operations_or_bytes_whichever_is_reached_first() {
        let tenant = capped(0, 0, 0);
        assert_eq!(tenant.floor(4096) as u64, 75_000);
        assert_eq!(tenant.floor(1 << 20) as u64, 715);
    }
}
