//! Pool status of the fake engine.

use super::Fake;
use engine::*;

impl Fake {
    pub fn status(&self, name: &str) -> PoolStatus {
        let pools = self.world.pools();
        let pool = &pools[name];
        let drives = pool.drives.iter().map(|spec| DriveStatus {
            reads: 0,
            id: format!("{:032x}", spec.len()),
            spec: spec.clone(),
            size: 1 << 30,
            state: "online".to_owned(),
            writes: 0,
            read_bytes: 0,
            write_bytes: 0,
            read_ns: 0,
            write_ns: 0,
            spread: IoSpread::default(),
            errors: 0,
            repaired: 0,
            timeouts: 0,
            slow: false,
            why: String::new(),
            synced_percent: None,
            wear: pool.wear,
        });
        let mut status = PoolStatus {
            id: pool.id.clone(),
            name: name.to_owned(),
            state: "online".to_owned(),
            messages: Vec::new(),
            policy: SpacePolicy::SlowFirst,
            shards: 1,
            capacity: 1 << 30,
            used: pool.used,
            reserved: 0,
            overpromised: 0,
            promised: pool.volumes.values().map(|volume| volume.size).sum(),
            fills: vec![FillStatus {
                part: FillPart::Space,
                used: pool.used,
                capacity: 1 << 30,
            }],
            warn_at: pool.warn_at.clone(),
            fast_capacity: 0,
            fast_dirty: 0,
            fast_shadow: 0,
            vdrives: vec![VdriveStatus {
                id: 1,
                tier: Tier::Slow,
                layout: match pool.mirrored {
                    true => LayoutSpec::Mirror,
                    false => LayoutSpec::Concat,
                },
                state: "online".to_owned(),
                capacity: 1 << 30,
                used: 0,
                drives: drives.collect(),
            }],
            volumes: pool.volumes.len(),
            promotion_held: false,
            map_bytes: 0,
            ram_bytes: pool.ram.0,
            ram_limit: pool.ram.1,
            scrub: pool.scrub.clone(),
            budget: pool.budget,
            old: Vec::new(),
            opening_lost: 0,
            generation: pool.generation,
        };
        pool.alter.iter().for_each(|alter| alter(&mut status));
        status
    }
}
