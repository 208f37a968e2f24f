//! Entity tags over the settings of an object, stable while nobody changes them.

use crate::access::sha256_hex;
use api::v1;
use serde_json::{Value, json};

/// Hexadecimal digits of a tag.
const DIGITS: usize = 32;

/// An object with an entity tag.
pub trait Tag {
    /// The settings that the tag covers.
    fn chosen(&self) -> Value;

    /// The entity tag (RFC 9110, section 8.8.3), in quotes.
    fn tag(&self) -> String {
        let digest = sha256_hex(&[self.chosen().to_string().as_bytes()]);
        format!("\"{}\"", &digest[..DIGITS])
    }
}

impl Tag for v1::Pool {
    fn chosen(&self) -> Value {
        let vdrive = |vdrive: &v1::Vdrive| {
            let drives: Vec<_> = vdrive.drives.iter().map(|drive| &drive.id).collect();
            json!([vdrive.id, vdrive.tier, vdrive.layout, drives])
        };
        let vdrives: Vec<Value> = self.vdrives.iter().map(vdrive).collect();
        let budget = self.promotion_budget.map(|budget| budget.daily);
        json!([
            "pool",
            self.id,
            self.name,
            self.policy,
            self.warn_at,
            self.promotion_held,
            budget,
            vdrives
        ])
    }
}

impl Tag for v1::Volume {
    fn chosen(&self) -> Value {
        let placement = self.placement.as_ref().map(|placement| {
            json!([
                placement.promotion,
                placement.pins,
                placement.fast_floor,
                placement.fast_ceiling,
                placement.reaction,
                placement.write_budget.map(|budget| budget.daily),
                placement.bypass.as_ref().map(|bypass| &bypass.initiators)
            ])
        });
        json!([
            "volume",
            self.serial,
            self.pool,
            self.name,
            self.size,
            self.quota,
            self.reservation,
            placement,
            self.targets,
            self.qos.as_ref().map(|qos| (qos.policy.id, &qos.group)),
            self.state
        ])
    }
}

impl Tag for v1::Snapshot {
    fn chosen(&self) -> Value {
        json!([
            "snapshot",
            self.identity,
            self.pool,
            self.volume,
            self.name,
            self.held
        ])
    }
}

impl Tag for v1::Export {
    fn chosen(&self) -> Value {
        json!([
            "export",
            self.pool,
            self.name,
            self.volume,
            self.kind,
            self.parameters,
            self.initiator,
            self.state == "disabled"
        ])
    }
}
