//! State of `convect top`: the last event and the load between events. Pure functions.

use crate::Load;
use api::v1::{Alert, Counters, Job, LivePolicy, LivePool, LiveState, LiveVolume};
use std::collections::BTreeMap;

/// A pool with its load since the previous event.
pub struct PoolNow {
    /// Its latest state.
    pub pool: LivePool,
    /// Its load.
    pub load: Load,
    /// Bytes promoted per second.
    pub promoted: f64,
    /// Bytes demoted per second.
    pub demoted: f64,
}

/// A policy with the performance of its volumes since the previous event.
pub struct PolicyNow {
    /// Its latest state.
    pub policy: LivePolicy,
    /// Operations per second.
    pub iops: f64,
    /// Throttled operations per second.
    pub held: f64,
    /// Share of the time with demand in which the minimums were met; nothing without demand.
    pub met: Option<f64>,
}

/// All known state.
#[derive(Default)]
pub struct LiveView {
    at_ms: u64,
    pools: BTreeMap<String, PoolNow>,
    volumes: BTreeMap<(String, String), (Counters, Load)>,
    policies: Vec<PolicyNow>,
    jobs: Vec<Job>,
    alerts: Option<Vec<Alert>>,
}

/// Performance of a policy's volumes between two events.
fn attained(before: Option<&LivePolicy>, policy: LivePolicy, seconds: f64) -> PolicyNow {
    let before = before.map_or(policy.did, |before| before.did);
    // A volume that changed its policy takes its counters along.
    let since = |index: usize| policy.did[index].saturating_sub(before[index]) as f64;
    let rate = |index: usize| {
        if seconds > 0.0 {
            since(index) / seconds
        } else {
            0.0
        }
    };
    PolicyNow {
        iops: rate(0),
        held: rate(1),
        met: (since(3) > 0.0).then(|| since(4) / since(3)),
        policy,
    }
}

fn counters(volume: &LiveVolume) -> Counters {
    let [reads, writes, read_bytes, write_bytes, read_ns, write_ns] = volume.did;
    Counters {
        reads,
        writes,
        read_bytes,
        write_bytes,
        read_ns,
        write_ns,
        ..Counters::default()
    }
}

impl LiveView {
    /// Applies an event. Objects missing from it were idle since the previous event.
    pub fn take(&mut self, event: LiveState) {
        let seconds = event.at_ms.saturating_sub(self.at_ms) as f64 / 1e3;
        let seconds = if self.at_ms == 0 { 0.0 } else { seconds };
        self.at_ms = event.at_ms;
        if event.whole {
            let names: Vec<&str> = event.pools.iter().map(|pool| pool.name.as_str()).collect();
            self.pools
                .retain(|known, _| names.contains(&known.as_str()));
            self.volumes
                .retain(|known, _| names.contains(&known.0.as_str()));
        }
        for now in self.pools.values_mut() {
            (now.load, now.promoted, now.demoted) = (Load::default(), 0.0, 0.0);
        }
        self.volumes
            .values_mut()
            .for_each(|(_, load)| *load = Load::default());
        for pool in event.pools {
            let before = self.pools.get(&pool.name);
            let before = before.map_or(pool.counters, |known| known.pool.counters);
            let rate = |before: u64, after: u64| match seconds > 0.0 {
                true => after.saturating_sub(before) as f64 / seconds,
                false => 0.0,
            };
            let now = PoolNow {
                load: Load::between(&before, &pool.counters, seconds),
                promoted: rate(before.promoted_bytes, pool.counters.promoted_bytes),
                demoted: rate(before.demoted_bytes, pool.counters.demoted_bytes),
                pool,
            };
            self.pools.insert(now.pool.name.clone(), now);
        }
        for volume in &event.volumes {
            let key = (volume.pool.clone(), volume.name.clone());
            let after = counters(volume);
            let before = self.volumes.get(&key).map_or(after, |(before, _)| *before);
            let load = Load::between(&before, &after, seconds);
            self.volumes.insert(key, (after, load));
        }
        if let Some(policies) = event.policies {
            let known = std::mem::take(&mut self.policies);
            let before = |policy: &LivePolicy| {
                let mut known = known.iter().map(|known| &known.policy);
                known.find(|known| (&known.pool, &known.name) == (&policy.pool, &policy.name))
            };
            let now = policies.into_iter();
            self.policies = now
                .map(|policy| attained(before(&policy), policy, seconds))
                .collect();
        } else {
            for now in &mut self.policies {
                (now.iops, now.held, now.met) = (0.0, 0.0, None);
            }
        }
        if let Some(jobs) = event.jobs {
            self.jobs = jobs;
        }
    }

    /// Applies the open alerts.
    pub fn take_alerts(&mut self, alerts: Vec<Alert>) {
        self.alerts = Some(alerts);
    }

    /// The open alerts; nothing while they are not known.
    pub fn alerts(&self) -> Option<&[Alert]> {
        self.alerts.as_deref()
    }

    /// The pools, by name.
    pub fn pools(&self) -> impl Iterator<Item = &PoolNow> {
        self.pools.values()
    }

    /// Volumes with their load, busiest first.
    pub fn busiest(&self) -> Vec<(String, Load)> {
        let named = |(key, known): (&(String, String), &(Counters, Load))| {
            (format!("{}/{}", key.0, key.1), known.1)
        };
        let mut volumes: Vec<(String, Load)> = self.volumes.iter().map(named).collect();
        let iops = |load: &Load| load.read_iops + load.write_iops;
        volumes.sort_by(|one, other| iops(&other.1).total_cmp(&iops(&one.1)));
        volumes
    }

    /// Policies in use, sorted by pool, level and name.
    pub fn policies(&self) -> &[PolicyNow] {
        &self.policies
    }

    /// Unfinished jobs.
    pub fn running(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| !job.state.is_ended())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ms: u64, whole: bool, reads: &[(&str, u64)]) -> LiveState {
        let did = |reads| [reads, 0, 0, 0, reads * 1_000_000, 0];
        let sum = reads.iter().map(|(_, reads)| reads).sum();
        let pool = LivePool {
            name: "tank".to_owned(),
            state: "online".to_owned(),
            counters: Counters {
                reads: sum,
                promoted_bytes: sum * 10,
                ..Counters::default()
            },
            used: 0,
            fast_dirty: 0,
            fast_shadow: 0,
            ram_bytes: 0,
        };
        let volumes = reads.iter().map(|(name, reads)| LiveVolume {
            pool: "tank".to_owned(),
            name: (*name).to_owned(),
            did: did(*reads),
        });
        LiveState {
            at_ms,
            whole,
            changes: 0,
            pools: vec![pool],
            volumes: volumes.collect(),
            policies: None,
            jobs: None,
        }
    }

    #[test]
    fn load_is_the_difference_between_events() {
        let mut watched = LiveView::default();
        watched.take(event(1000, true, &[("a", 100), ("b", 100)]));
        assert!(
            watched
                .busiest()
                .iter()
                .all(|(_, load)| load.read_iops == 0.0)
        );
        watched.take(event(3000, false, &[("a", 100), ("b", 300)]));
        let busiest = watched.busiest();
        assert_eq!(
            (busiest[0].0.as_str(), busiest[0].1.read_iops),
            ("tank/b", 100.0)
        );
        let now = watched.pools().next().unwrap();
        assert_eq!((now.load.read_iops, now.promoted), (100.0, 1000.0));
        watched.take(event(4000, false, &[]));
        assert_eq!(watched.busiest()[0].1.read_iops, 0.0);
    }

    #[test]
    fn policies_show_what_their_volumes_attained() {
        let with = |at_ms, did| LiveState {
            policies: Some(vec![LivePolicy {
                pool: "tank".to_owned(),
                name: "gold".to_owned(),
                level: 2,
                volumes: 3,
                promised_iops: 500,
                did,
            }]),
            ..event(at_ms, at_ms == 1000, &[])
        };
        let mut watched = LiveView::default();
        watched.take(with(1000, [100, 10, 5, 20, 10]));
        assert_eq!(watched.policies()[0].met, None);
        watched.take(with(3000, [300, 30, 5, 40, 29]));
        let now = &watched.policies()[0];
        assert_eq!((now.iops, now.held, now.met), (100.0, 10.0, Some(0.95)));
        watched.take(event(4000, false, &[]));
        let now = &watched.policies()[0];
        assert_eq!((now.iops, now.held, now.met), (0.0, 0.0, None));
    }

    #[test]
    fn removed_pool_takes_its_volumes_along() {
        let mut watched = LiveView::default();
        watched.take(event(1000, true, &[("a", 1)]));
        let gone = LiveState {
            pools: Vec::new(),
            ..event(2000, true, &[])
        };
        watched.take(gone);
        assert!(watched.pools().next().is_none() && watched.busiest().is_empty());
    }
}
