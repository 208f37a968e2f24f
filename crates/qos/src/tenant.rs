//! A tenant: a volume with a policy, or a group of volumes that share one, as all shards of its pool know it.

use super::costs::rate;
use super::service::Service;
use format::QosPolicyConfig;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Minimum burst of a maximum, in nanoseconds' worth: the credit of a gate's tick.
const BURST_LEAST_NS: u64 = 25_000_000;
const SECOND: u64 = 1_000_000_000;

/// A limit of units per second over all shards: the generic cell rate algorithm, whose state is one moment.
#[derive(Debug, Default)]
struct Limit {
    /// When the units that were taken would all have come in.
    paid_ns: AtomicU64,
}

/// Nanoseconds' worth of its maximum that a volume may save up.
fn burst_ns(policy: &QosPolicyConfig) -> u64 {
    (u64::from(policy.burst_s) * SECOND).max(BURST_LEAST_NS)
}

impl Limit {
    /// Whether something may pass now. Two shards may ask at one moment, and one operation each be too many:
    /// their use is counted nevertheless.
    /// `rate`: units per second, 0 for no limit.
    fn allows(&self, rate: u64, burst_ns: u64, now_ns: u64) -> bool {
        rate == 0 || self.paid_ns.load(Ordering::Relaxed) <= now_ns + burst_ns
    }

    fn take(&self, rate: u64, units: u64, now_ns: u64) {
        if rate == 0 {
            return;
        }
        let takes = u128::from(units) * u128::from(SECOND) / u128::from(rate);
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
    /// Shared by all that have it.
    policy: Arc<QosPolicyConfig>,
    operations: Limit,
    bytes: Limit,
    service: Mutex<Service>,
}

impl Tenant {
    /// A volume of a pool with a number of shards.
    pub fn new(policy: Arc<QosPolicyConfig>, shards: usize) -> Self {
        Self {
            group: 0,
            operations: Limit::default(),
            bytes: Limit::default(),
            service: Mutex::new(Service::new(shards)),
            policy,
        }
    }

    /// The same for a group with this number, which no volume has.
    pub fn of_group(group: u32, policy: Arc<QosPolicyConfig>, shards: usize) -> Self {
        Self {
            group,
            ..Self::new(policy, shards)
        }
    }

    /// Number of the group; 0: a single volume.
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Continues the counters of its predecessor: credit of a maximum that was used stays used.
    /// `counts`: also the sums of attained service.
    pub fn resume(&self, before: &Self, counts: bool) {
        for (limit, before) in [
            (&self.operations, &before.operations),
            (&self.bytes, &before.bytes),
        ] {
            let paid_ns = before.paid_ns.load(Ordering::Relaxed);
            limit.paid_ns.store(paid_ns, Ordering::Relaxed);
        }
        if counts {
            let totals = before.service().totals();
            self.service().resume(totals);
        }
    }

    /// Its guarantees.
    pub fn policy(&self) -> &QosPolicyConfig {
        &self.policy
    }

    /// Whether it has a maximum.
    pub fn is_capped(&self) -> bool {
        self.policy.max_iops > 0 || self.policy.max_bandwidth > 0
    }

    /// Whether its maximums let an operation pass now.
    pub fn allows(&self, now_ns: u64) -> bool {
        let (policy, burst_ns) = (&self.policy, burst_ns(&self.policy));
        self.operations.allows(policy.max_iops, burst_ns, now_ns)
            && self.bytes.allows(policy.max_bandwidth, burst_ns, now_ns)
    }

    /// Counts an operation against its maximums.
    pub fn take(&self, bytes: u64, now_ns: u64) {
        self.operations.take(self.policy.max_iops, 1, now_ns);
        self.bytes.take(self.policy.max_bandwidth, bytes, now_ns);
    }

    /// Operations a second that it is guaranteed, where each has `bytes`; 0 for none.
    pub fn floor(&self, bytes: u64) -> f64 {
        rate(self.policy.min_iops, self.policy.min_bandwidth, bytes)
    }

    /// Its attained service. Gates access it once per tick, and status calls do: it is never locked for an operation.
    pub fn service(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Report;

    fn capped(max_iops: u64, max_bandwidth: u64, burst_s: u32) -> Tenant {
        let first = format::built_in_policies().next().unwrap();
        let policy = QosPolicyConfig {
            max_iops,
            max_bandwidth,
            burst_s,
            ..first
        };
        Tenant::new(Arc::new(policy), 1)
    }

    /// Operations that pass in `ms` milliseconds, with one request every 10 µs, from `start_ms` on.
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
    fn a_change_of_figures_gives_no_new_burst() {
        let tenant = capped(1000, 0, 2);
        passed(&tenant, 10_000, 1000, 4096);
        let next = capped(1001, 0, 2);
        next.resume(&tenant, true);
        let got = passed(&next, 11_000, 1000, 4096);
        assert!((990..=1002).contains(&got), "{got}");
    }

    #[test]
    fn an_idle_volume_with_a_policy_takes_less_than_256_bytes() {
        let tenant = Arc::new(capped(0, 0, 0));
        // The counts of an `Arc`, and its place in the maps of a pool and of its shards, which they share.
        let places = 2 * size_of::<usize>() + 2 * size_of::<(u32, Arc<Tenant>)>() * 2;
        assert!(size_of::<Tenant>() + places <= 256);
        let busy = Report {
            operations: 1,
            cost_ns: 1000,
            ..Report::default()
        };
        let mut service = tenant.service();
        service.report(tenant.policy(), 0, 1000, &busy);
        assert!(service.is_busy());
        service.rest(0);
        assert!(!service.is_busy(), "what was for a busy one is given back");
        assert_eq!(service.totals().operations, 1);
    }

    #[test]
    fn a_floor_is_by_operations_or_bytes_whichever_is_reached_first() {
        let tenant = capped(0, 0, 0);
        assert_eq!(tenant.floor(4096) as u64, 75_000);
        assert_eq!(tenant.floor(1 << 20) as u64, 715);
    }
}
