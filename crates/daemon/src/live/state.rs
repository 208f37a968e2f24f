//! State of pools, volumes and jobs, and its changes. Pure functions.

use api::v1::{Job, LivePolicy, LivePool, LiveState, LiveVolume};
use std::cmp::Reverse;

/// Maximum number of volumes in an update.
const VOLUMES_MAX: usize = 256;
/// Maximum number of volumes in a viewer's first update.
const VOLUMES_WHOLE_MAX: usize = 2048;

/// The state at a point in time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LiveSnapshot {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// Number of the newest audit entry.
    pub changes: u64,
    /// Pools, by name.
    pub pools: Vec<LivePool>,
    /// Volumes, by pool and name.
    pub volumes: Vec<LiveVolume>,
    /// Policies in use, by pool, level and name.
    pub policies: Vec<LivePolicy>,
    /// The jobs.
    pub jobs: Vec<Job>,
}

fn busiest(mut volumes: Vec<(u64, &LiveVolume)>, most: usize) -> Vec<LiveVolume> {
    if volumes.len() > most {
        volumes.sort_by_key(|(did, _)| Reverse(*did));
        volumes.truncate(most);
    }
    volumes
        .into_iter()
        .map(|(_, volume)| volume.clone())
        .collect()
}

fn operations(volume: &LiveVolume) -> u64 {
    volume.did[0].wrapping_add(volume.did[1])
}

impl LiveSnapshot {
    /// The whole state.
    pub fn whole(&self) -> LiveState {
        let volumes = self
            .volumes
            .iter()
            .map(|volume| (operations(volume), volume));
        LiveState {
            at_ms: self.at_ms,
            whole: true,
            changes: self.changes,
            pools: self.pools.clone(),
            volumes: busiest(volumes.collect(), VOLUMES_WHOLE_MAX),
            policies: Some(self.policies.clone()),
            jobs: Some(self.jobs.clone()),
        }
    }
}

/// Changes since `before`; the whole state if a pool or volume is gone.
pub fn changes(before: &LiveSnapshot, now: &LiveSnapshot) -> LiveState {
    let known = |volume: &LiveVolume| {
        let key = (&volume.pool, &volume.name);
        let at = before
            .volumes
            .binary_search_by(|known| (&known.pool, &known.name).cmp(&key));
        at.ok().map(|at| &before.volumes[at])
    };
    let names = |seen: &LiveSnapshot| -> Vec<String> {
        seen.pools.iter().map(|pool| pool.name.clone()).collect()
    };
    let stayed = now.volumes.iter().filter(|volume| known(volume).is_some());
    if stayed.count() < before.volumes.len() || names(before) != names(now) {
        return now.whole();
    }
    let pools = now.pools.iter().filter(|pool| !before.pools.contains(pool));
    let volumes = now.volumes.iter().filter_map(|volume| match known(volume) {
        Some(before) if before.did == volume.did => None,
        Some(before) => {
            let did = operations(volume).saturating_sub(operations(before));
            Some((did, volume))
        }
        None => Some((operations(volume), volume)),
    });
    LiveState {
        at_ms: now.at_ms,
        whole: false,
        changes: now.changes,
        pools: pools.cloned().collect(),
        volumes: busiest(volumes.collect(), VOLUMES_MAX),
        policies: (before.policies != now.policies).then(|| now.policies.clone()),
        jobs: (before.jobs != now.jobs).then(|| now.jobs.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::v1::Counters;

    fn pool(name: &str, reads: u64) -> LivePool {
        LivePool {
            name: name.to_owned(),
            state: "online".to_owned(),
            counters: Counters {
                reads,
                ..Counters::default()
            },
            used: 0,
            fast_dirty: 0,
            fast_shadow: 0,
            ram_bytes: 0,
        }
    }

    fn volume(name: &str, reads: u64) -> LiveVolume {
        LiveVolume {
            pool: "tank".to_owned(),
            name: name.to_owned(),
            did: [reads, 0, 0, 0, 0, 0],
        }
    }

    fn seen(reads: &[(&str, u64)]) -> LiveSnapshot {
        LiveSnapshot {
            pools: vec![pool("tank", reads.iter().map(|(_, reads)| reads).sum())],
            volumes: reads
                .iter()
                .map(|(name, reads)| volume(name, *reads))
                .collect(),
            ..LiveSnapshot::default()
        }
    }

    #[test]
    fn only_changes_are_sent() {
        let before = seen(&[("a", 1), ("b", 2)]);
        let same = changes(&before, &before);
        assert!(same.pools.is_empty() && same.volumes.is_empty() && same.jobs.is_none());
        let now = seen(&[("a", 1), ("b", 3), ("c", 1)]);
        let told = changes(&before, &now);
        assert_eq!((told.whole, told.pools.len()), (false, 1));
        assert_eq!(told.volumes, [volume("b", 3), volume("c", 1)]);
    }

    #[test]
    fn removal_resends_the_whole_state() {
        let before = seen(&[("a", 1), ("b", 2)]);
        let told = changes(&before, &seen(&[("b", 2), ("c", 0)]));
        assert!(told.whole && told.volumes.len() == 2);
        let mut now = before.clone();
        now.pools = vec![pool("other", 3)];
        assert!(changes(&before, &now).whole);
    }

    #[test]
    fn busiest_of_many_volumes_are_sent() {
        let names: Vec<String> = (0..1000).map(|number| format!("v{number:03}")).collect();
        let at = |by: u64| -> Vec<(&str, u64)> {
            let numbered = names.iter().zip(1..);
            numbered
                .map(|(name, number)| (name.as_str(), by * number))
                .collect()
        };
        let told = changes(&seen(&at(1)), &seen(&at(3)));
        assert_eq!((told.whole, told.volumes.len()), (false, VOLUMES_MAX));
        assert_eq!(told.volumes[0], volume("v999", 3000));
        let length = serde_json::to_string(&told).unwrap().len();
        assert!(length < 64 << 10, "{length} bytes a second");
    }
}
