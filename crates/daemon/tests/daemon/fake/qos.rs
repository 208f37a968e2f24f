//! QoS policies of the fake engine: one built-in policy, and no others.

use super::{Fake, Result, fail};
use engine::*;

/// The policy of its pools.
pub fn policy() -> QosPolicy {
    QosPolicy {
        id: 1,
        name: "mission-critical".to_owned(),
        level: 1,
        min_iops: 75_000,
        min_bandwidth: 750_000_000,
        max_iops: 0,
        max_bandwidth: 0,
        burst_s: 0,
        max_latency_ns: 10_000_000,
        weight: 100,
        reaction: engine::Reaction::Normal,
        fast_floor: 0,
        ram_percent: 0,
    }
}

/// What a volume attained.
pub fn attained(windows: u64, met: u64) -> VolumeQos {
    VolumeQos {
        policy: policy(),
        group: None,
        iops: 1000,
        bandwidth: 4_096_000,
        operations: 5000,
        late: 50,
        held: 40,
        held_ns: windows * 90_000_000,
        own_ns: windows * 1_000_000,
        waited_ns: windows * 900_000_000,
        took_ns: windows * 1_000_000,
        held_for: vec![QosRival {
            name: "scan".to_owned(),
            group: false,
            share_ppm: 630_000,
        }],
        cost_ns: 1_500_000_000,
        windows,
        met,
    }
}

/// The group of its pools, or a created one.
pub fn group(made: Option<&GroupChoice>) -> QosGroup {
    let name = made.map_or("accounting", |made| made.name.as_str());
    QosGroup {
        name: name.to_owned(),
        volumes: if made.is_some() {
            vec![]
        } else {
            vec!["ledger".to_owned()]
        },
        qos: Some(VolumeQos {
            group: Some(name.to_owned()),
            ..attained(100, 99)
        }),
    }
}

impl Fake {
    /// Response to an admission check.
    pub fn check_of(&self, pool: &str, planned: Option<(&str, usize)>) -> Result<QosCheck> {
        let claim = || QosClaim {
            volume: "(planned)".to_owned(),
            group: false,
            policy: policy(),
            share_ppm: Some(375_000),
        };
        let count = match planned {
            Some((name, _)) if name != "mission-critical" => {
                return fail(ErrorCode::NotFound, "there is no such policy");
            }
            planned => planned.map_or(0, |(_, count)| count),
        };
        self.with(pool, |_| {
            Ok(QosCheck {
                capacity_iops: Some(200_000),
                claims: (0..count).map(|_| claim()).collect(),
                total_ppm: Some(375_000 * count as u64),
                fast_guaranteed: 3 << 30,
                fast_limit: 15 << 30,
                verdict: match count {
                    ..=2 => QosVerdict::Accepted,
                    _ => QosVerdict::Refused,
                },
                message: "feasible".to_owned(),
            })
        })
    }
}
