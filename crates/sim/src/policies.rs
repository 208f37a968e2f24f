//! Policies of quality of service that volumes get and lose in a run, under load (docs/qos.md). None of them changes what
//! hosts read; an acknowledged one survives all faults, and one that a volume has is not deleted.

use crate::openings::Opened;
use crate::oracle::{Oracle, Wrong};
use crate::random::Random;
use crate::run::{POOL, Run, Step};
use engine::{
    ErrorCode, PolicyChoice, QosPolicy, QosPolicyChange, Reaction, VolumeChange, VolumeStatus,
};
use std::collections::BTreeMap;
use units::BLOCK;

/// Valid policies of volumes, by number, 0 for none: the last acknowledged one, or those requested since.
pub type Policies = BTreeMap<u32, Vec<u32>>;

/// The pool's policy beside the built-in ones.
const OWN: &str = "own";
/// Most operations a second of one that has a maximum: a run's loads end soon with that.
const MAX_IOPS: u64 = 20_000;

impl Oracle {
    /// Whether an opening finds the policies that volumes have.
    pub(crate) fn check_policies(&self, opened: &Opened) -> Step {
        let known = &opened.label.config.volumes;
        for (volume, may_be) in &self.policies {
            if let Some(found) = known.iter().find(|known| known.id == *volume) {
                is_one_of(*volume, may_be, found.policy)?;
            }
        }
        Ok(())
    }
}

fn is_one_of(volume: u32, may_be: &[u32], found: u32) -> Step {
    match may_be.contains(&found) {
        true => Ok(()),
        false => Err(Wrong(format!(
            "volume {volume} has policy {found} of {may_be:?}"
        ))),
    }
}

impl Run {
    /// A volume gets or loses a policy, or the pool's own one is created, changed or deleted.
    pub fn set_policy(&mut self) -> Step {
        match self.policies.below(8) {
            0 => self.delete_policy()?,
            1 | 2 => self.change_policy()?,
            _ => self.give_policy()?,
        }
        self.found()
    }

    fn give_policy(&mut self) -> Step {
        let (name, number) = self.policies.pick(&self.volumes).clone();
        let own = self.own_policy()?;
        let policy = match self.policies.below(8) {
            0 => 0,
            known @ 1..=5 => known as u32,
            _ => own.unwrap_or(1),
        };
        {
            let mut oracle = self.client.oracle.borrow_mut();
            // What it has was not asked for here: a clone inherits one.
            let may_be = oracle.policies.entry(number);
            may_be
                .or_insert_with(|| (0..=5).chain(own).collect())
                .push(policy);
        }
        let change = VolumeChange {
            policy: Some(PolicyChoice {
                policy: match policy {
                    0 => String::new(),
                    id => id.to_string(),
                },
                overcommit: true,
                ..PolicyChoice::default()
            }),
            ..VolumeChange::default()
        };
        let changed = self.engine().volume_change(POOL, &name, &change);
        if self.granted("a volume gets no policy", changed)?.is_some() {
            let mut oracle = self.client.oracle.borrow_mut();
            oracle.policies.insert(number, vec![policy]);
        }
        Ok(())
    }

    fn own_policy(&self) -> Result<Option<u32>, Wrong> {
        let all = self.engine().qos_policies(POOL);
        let all = self.granted("no policies", all)?.unwrap_or_default();
        let own = all.iter().find(|policy| policy.name == OWN);
        Ok(own.map(|policy| policy.id))
    }

    fn change_policy(&mut self) -> Step {
        let own = self.own_policy()?;
        let policy = own_policy(&mut self.policies);
        let changed = match own {
            None => self.engine().qos_policy_create(POOL, &policy),
            Some(_) => {
                let change = QosPolicyChange {
                    level: Some(policy.level),
                    min_iops: Some(policy.min_iops),
                    max_iops: Some(policy.max_iops),
                    weight: Some(policy.weight),
                    reaction: Some(policy.reaction),
                    fast_floor: Some(policy.fast_floor),
                    ram_percent: Some(policy.ram_percent),
                    overcommit: true,
                    ..QosPolicyChange::default()
                };
                self.engine().qos_policy_change(POOL, OWN, &change)
            }
        };
        self.granted("a policy cannot change", changed).map(drop)
    }

    /// Deletes the pool's own policy: refused while a volume has it.
    fn delete_policy(&mut self) -> Step {
        let Some(own) = self.own_policy()? else {
            return Ok(());
        };
        let uses = |volume: &VolumeStatus| match &volume.qos {
            Some(qos) => qos.policy.id == own,
            None => false,
        };
        let volumes = self.engine().volume_list(POOL);
        let Some(volumes) = self.granted("no volumes", volumes)? else {
            return Ok(());
        };
        let is_used = volumes.iter().any(uses);
        match self.engine().qos_policy_delete(POOL, OWN) {
            Ok(()) if is_used => Err(Wrong("a policy that a volume has is deleted".into())),
            Err(failed) if is_used && failed.code == ErrorCode::Busy => Ok(()),
            deleted => self
                .granted("a policy cannot be deleted", deleted)
                .map(drop),
        }
    }

    /// The stored policy of each volume is valid: from then on it is known.
    pub fn look_at_policies(&mut self) -> Step {
        let all = self.client.oracle.borrow().policies.clone();
        if all.is_empty() {
            return Ok(());
        }
        let volumes = self.engine().volume_list(POOL);
        let Some(volumes) = self.granted("no volumes", volumes)? else {
            return Ok(());
        };
        for (number, may_be) in all {
            let mut oracle = self.client.oracle.borrow_mut();
            let Some(volume) = volumes.iter().find(|volume| volume.id == number) else {
                oracle.policies.remove(&number);
                continue;
            };
            let policy = volume.qos.as_ref().map_or(0, |qos| qos.policy.id);
            is_one_of(number, &may_be, policy)?;
            oracle.policies.insert(number, vec![policy]);
        }
        Ok(())
    }
}

/// Any figures of the pool's own policy.
fn own_policy(random: &mut Random) -> QosPolicy {
    QosPolicy {
        id: 0,
        name: OWN.to_owned(),
        level: random.within(1..=5) as u8,
        min_iops: random.below(2) * random.within(0..=MAX_IOPS),
        min_bandwidth: 0,
        max_iops: random.below(2) * MAX_IOPS,
        max_bandwidth: 0,
        burst_s: 0,
        max_latency_ns: 0,
        weight: random.within(1..=10_000) as u32,
        reaction: *random.pick(&[Reaction::Normal, Reaction::Eager, Reaction::Thrifty]),
        fast_floor: random.below(3) * random.within(0..=100) * BLOCK as u64,
        ram_percent: (random.below(2) * random.within(0..=75)) as u8,
    }
}
