//! QoS settings, converted between types of the engine and of the API.

use crate::mapping::{ToApi, ToEngine};
use api::v1;

/// The name that means no policy.
const NONE: &str = "none";
/// Default weight.
const WEIGHT: u32 = 100;
/// Numbers below this are built-in policies.
const OWN_FROM: u32 = 100;

fn some(value: u64) -> Option<u64> {
    Some(value).filter(|value| *value > 0)
}

fn percent(ppm: u64) -> f64 {
    ppm as f64 / 1e4
}

/// A policy by its name, number or `none`, or a group by its name or `none`; nothing if neither is
/// given.
pub fn choice(
    policy: Option<&str>,
    group: Option<&str>,
    overcommit: bool,
) -> Option<engine::PolicyChoice> {
    let name = |of: Option<&str>| {
        of.filter(|name| *name != NONE)
            .unwrap_or_default()
            .to_owned()
    };
    (policy.is_some() || group.is_some()).then(|| engine::PolicyChoice {
        policy: name(policy),
        group: name(group),
        overcommit,
    })
}

impl ToApi for engine::QosGroup {
    type Api = v1::QosGroup;
    fn to_api(self) -> v1::QosGroup {
        v1::QosGroup {
            name: self.name,
            volumes: self.volumes,
            qos: self.qos.map(ToApi::to_api),
        }
    }
}

impl ToApi for engine::QosPolicy {
    type Api = v1::QosPolicy;
    fn to_api(self) -> v1::QosPolicy {
        v1::QosPolicy {
            id: self.id,
            name: self.name,
            built_in: self.id < OWN_FROM,
            level: self.level,
            min_iops: some(self.min_iops),
            min_bandwidth: some(self.min_bandwidth),
            max_iops: some(self.max_iops),
            max_bandwidth: some(self.max_bandwidth),
            burst_s: Some(self.burst_s).filter(|seconds| *seconds > 0),
            max_latency_ns: some(self.max_latency_ns),
            weight: self.weight,
            reaction: self.reaction.to_api(),
            fast_floor: some(self.fast_floor),
            ram_percent: Some(self.ram_percent).filter(|percent| *percent > 0),
        }
    }
}

impl ToEngine for v1::QosPolicyCreate {
    type Engine = engine::QosPolicy;
    fn to_engine(self) -> engine::QosPolicy {
        engine::QosPolicy {
            id: 0,
            name: self.name,
            level: self.level,
            min_iops: self.min_iops.unwrap_or(0),
            min_bandwidth: self.min_bandwidth.unwrap_or(0),
            max_iops: self.max_iops.unwrap_or(0),
            max_bandwidth: self.max_bandwidth.unwrap_or(0),
            burst_s: self.burst_s.unwrap_or(0),
            max_latency_ns: self.max_latency_ns.unwrap_or(0),
            weight: self.weight.unwrap_or(WEIGHT),
            reaction: self.reaction.unwrap_or_default().to_engine(),
            fast_floor: self.fast_floor.unwrap_or(0),
            ram_percent: self.ram_percent.unwrap_or(0),
        }
    }
}

impl ToEngine for v1::QosPolicyChange {
    type Engine = engine::QosPolicyChange;
    fn to_engine(self) -> engine::QosPolicyChange {
        engine::QosPolicyChange {
            level: self.level,
            min_iops: self.min_iops,
            min_bandwidth: self.min_bandwidth,
            max_iops: self.max_iops,
            max_bandwidth: self.max_bandwidth,
            burst_s: self.burst_s,
            max_latency_ns: self.max_latency_ns,
            weight: self.weight,
            reaction: self.reaction.map(ToEngine::to_engine),
            fast_floor: self.fast_floor,
            ram_percent: self.ram_percent,
            overcommit: self.overcommit,
        }
    }
}

impl ToApi for engine::QosRival {
    type Api = v1::QosRival;
    fn to_api(self) -> v1::QosRival {
        v1::QosRival {
            name: self.name,
            group: self.group,
            share_percent: (self.share_ppm / 10_000) as u8,
        }
    }
}

impl ToApi for engine::VolumeQos {
    type Api = v1::VolumeQos;
    fn to_api(self) -> v1::VolumeQos {
        v1::VolumeQos {
            policy: self.policy.to_api(),
            group: self.group,
            iops: self.iops,
            bandwidth: self.bandwidth,
            operations: self.operations,
            late: self.late,
            held: self.held,
            held_ns: self.held_ns,
            own_ns: self.own_ns,
            waited_ns: self.waited_ns,
            took_ns: self.took_ns,
            held_for: self.held_for.to_api(),
            bottleneck: None,
            cost_ns: self.cost_ns,
            windows: self.windows,
            met: self.met,
        }
    }
}

impl ToApi for engine::QosClaim {
    type Api = v1::QosClaim;
    fn to_api(self) -> v1::QosClaim {
        v1::QosClaim {
            volume: self.volume,
            group: self.group,
            policy: self.policy.to_api(),
            share_percent: self.share_ppm.map(percent),
        }
    }
}

impl ToApi for engine::QosCheck {
    type Api = v1::QosCheck;
    fn to_api(self) -> v1::QosCheck {
        v1::QosCheck {
            capacity_iops: self.capacity_iops,
            claims: self.claims.to_api(),
            total_percent: self.total_ppm.map(percent),
            fast_guaranteed: self.fast_guaranteed,
            fast_limit: self.fast_limit,
            verdict: match self.verdict {
                engine::QosVerdict::Accepted => v1::QosVerdict::Accepted,
                engine::QosVerdict::Warning => v1::QosVerdict::Warning,
                engine::QosVerdict::Refused => v1::QosVerdict::Refused,
            },
            message: self.message,
            tiers: Vec::new(),
            needs_fast: None,
        }
    }
}
