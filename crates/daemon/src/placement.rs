//! Placement settings of volumes, converted between types of the engine and of the API.

use crate::mapping::{ToApi, ToEngine};
use api::v1;

impl ToApi for engine::Reaction {
    type Api = v1::Reaction;
    fn to_api(self) -> v1::Reaction {
        match self {
            Self::Eager => v1::Reaction::Eager,
            Self::Normal => v1::Reaction::Normal,
            Self::Thrifty => v1::Reaction::Thrifty,
        }
    }
}

impl ToEngine for v1::Reaction {
    type Engine = engine::Reaction;
    fn to_engine(self) -> engine::Reaction {
        match self {
            Self::Eager => engine::Reaction::Eager,
            Self::Normal => engine::Reaction::Normal,
            Self::Thrifty => engine::Reaction::Thrifty,
        }
    }
}

impl ToApi for engine::Pin {
    type Api = v1::Pin;
    fn to_api(self) -> v1::Pin {
        v1::Pin {
            offset: self.offset,
            length: self.length,
            tier: self.tier.to_api(),
        }
    }
}

impl ToEngine for v1::PinChange {
    type Engine = engine::PinChange;
    fn to_engine(self) -> engine::PinChange {
        engine::PinChange {
            offset: self.offset,
            length: self.length,
            tier: match self.to {
                v1::PinTo::Fast => Some(engine::Tier::Fast),
                v1::PinTo::Slow => Some(engine::Tier::Slow),
                v1::PinTo::None => None,
            },
        }
    }
}

impl ToApi for engine::KnobsStatus {
    type Api = v1::Placement;
    fn to_api(self) -> v1::Placement {
        let some = |bytes: u64| Some(bytes).filter(|bytes| *bytes > 0);
        v1::Placement {
            promotion: self.promotion,
            pins: self.pins.to_api(),
            fast_floor: some(self.fast_floor),
            fast_ceiling: some(self.fast_ceiling),
            reaction: self.reaction.to_api(),
            write_budget: some(self.write_budget).map(|daily| v1::WriteBudget {
                daily,
                used: self.budget_used,
                left: self.budget_left,
            }),
            bypass: bypass(self.bypass, self.bypassed),
        }
    }
}

/// Nothing if no initiator is bypassed.
fn bypass(initiators: Vec<String>, [reads, writes, blocks]: [u64; 3]) -> Option<v1::Bypass> {
    (!initiators.is_empty()).then_some(v1::Bypass {
        initiators,
        reads,
        writes,
        blocks,
    })
}

impl ToEngine for v1::VolumeChange {
    type Engine = engine::VolumeChange;
    fn to_engine(self) -> engine::VolumeChange {
        let pins = self.pins.into_iter();
        let (policy, group) = (self.policy.as_deref(), self.group.as_deref());
        engine::VolumeChange {
            quota: self.quota,
            reservation: self.reservation,
            policy: crate::qos::choice(policy, group, self.overcommit),
            targets: engine::TargetsChange {
                iops: self.target_iops,
                bandwidth: self.target_bandwidth,
                latency_ns: self.target_latency_ns,
            },
            knobs: engine::KnobsChange {
                promotion: self.promotion,
                pins: pins.map(ToEngine::to_engine).collect(),
                fast_floor: self.fast_floor,
                fast_ceiling: self.fast_ceiling,
                reaction: self.reaction.map(ToEngine::to_engine),
                write_budget: self.write_budget,
                bypass: self.bypass,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn placement_change_is_converted_unmodified() {
        let asked = json!({
            "promotion": false,
            "pins": [{"to": "slow"}, {"offset": 65536, "length": 4096, "to": "fast"}, {"to": "none"}],
            "fast_floor": 4096, "fast_ceiling": 0, "reaction": "thrifty", "write_budget": 5,
            "bypass": ["backup"]
        });
        let asked: v1::VolumeChange = serde_json::from_value(asked).unwrap();
        let pin = |offset, length, tier| engine::PinChange {
            offset,
            length,
            tier,
        };
        let knobs = engine::KnobsChange {
            promotion: Some(false),
            pins: vec![
                pin(0, None, Some(engine::Tier::Slow)),
                pin(65_536, Some(4096), Some(engine::Tier::Fast)),
                pin(0, None, None),
            ],
            fast_floor: Some(4096),
            fast_ceiling: Some(0),
            reaction: Some(engine::Reaction::Thrifty),
            write_budget: Some(5),
            bypass: Some(vec!["backup".to_owned()]),
        };
        let change = asked.to_engine();
        assert_eq!((change.quota, change.knobs), (None, knobs));
        let unknown = json!({"pins": [{"to": "tape"}]});
        assert!(serde_json::from_value::<v1::VolumeChange>(unknown).is_err());
    }

    #[test]
    fn defaults_are_omitted() {
        let status = engine::KnobsStatus {
            promotion: true,
            pins: vec![engine::Pin {
                offset: 0,
                length: None,
                tier: engine::Tier::Fast,
            }],
            fast_floor: 0,
            fast_ceiling: 8192,
            reaction: engine::Reaction::Normal,
            write_budget: 10,
            bypass: Vec::new(),
            bypassed: [1, 2, 3],
            budget_used: 3,
            budget_left: 2,
        };
        let told = serde_json::to_value(status.clone().to_api()).unwrap();
        let expected = json!({
            "promotion": true, "pins": [{"offset": 0, "tier": "fast"}], "fast_ceiling": 8192,
            "reaction": "normal", "write_budget": {"daily": 10, "used": 3, "left": 2}
        });
        assert_eq!(told, expected);
        let bypass = vec!["backup".to_owned()];
        let status = engine::KnobsStatus { bypass, ..status };
        let told = serde_json::to_value(status.to_api()).unwrap();
        let expected = json!({"initiators": ["backup"], "reads": 1, "writes": 2, "blocks": 3});
        assert_eq!(told["bypass"], expected);
    }
}
