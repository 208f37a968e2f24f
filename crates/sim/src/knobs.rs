//! Settings of volumes that change in a run, under load: none of them changes what hosts read.

use crate::oracle::Wrong;
use crate::random::Random;
use crate::run::{POOL, Run, Step};
use engine::{ErrorCode, KnobsChange, PinChange, Reaction, Tier, VolumeChange};
use units::BLOCK;

impl Run {
    /// Something about the placement of a volume is otherwise from now on.
    pub fn turn_knobs(&mut self) -> Step {
        let random = &mut self.knobs;
        let (name, number) = random.pick(&self.volumes).clone();
        let size = self.client.oracle.borrow().volumes[&number].size;
        let change = VolumeChange {
            knobs: knobs(random, size),
            ..VolumeChange::default()
        };
        let changed = self.engine().volume_change(POOL, &name, &change);
        match changed {
            // The fast tier is too small for that, there is no other one, or the floor would be above the ceiling.
            Err(failed) if matches!(failed.code, ErrorCode::Refused | ErrorCode::Invalid) => Ok(()),
            changed => self
                .granted("a volume's knobs cannot change", changed)
                .map(drop),
        }?;
        self.right_about(&name)
    }

    /// The reported part of the fast tier of a volume is plausible.
    fn right_about(&mut self, name: &str) -> Step {
        let volumes = self.engine().volume_list(POOL);
        let Some(volumes) = self.granted("no volumes", volumes)? else {
            return Ok(());
        };
        match volumes.iter().find(|volume| volume.name == name) {
            Some(volume) if volume.fast > volume.held => Err(Wrong(format!(
                "{name} has {} bytes on the fast tier of {}",
                volume.fast, volume.held
            ))),
            _ => Ok(()),
        }
    }
}

fn knobs(random: &mut Random, size: u64) -> KnobsChange {
    let mut change = KnobsChange::default();
    match random.below(8) {
        0 => change.promotion = Some(random.one_in(2)),
        1 => change.fast_floor = Some(random.below(4) * random.within(0..=100) * BLOCK as u64),
        2 => change.fast_ceiling = Some(random.below(3) * random.within(0..=300) * BLOCK as u64),
        3 => change.write_budget = Some(random.below(3) * (random.within(1..=1 << 30))),
        4 => change.reaction = Some(*random.pick(&[Reaction::Eager, Reaction::Thrifty])),
        _ => change.pins.push(pin(random, size)),
    }
    change
}

fn pin(random: &mut Random, size: u64) -> PinChange {
    let offset = match random.one_in(2) {
        true => 0,
        false => random.below(size),
    };
    PinChange {
        offset,
        length: (!random.one_in(3)).then(|| random.within(1..=4 << 20)),
        tier: *random.pick(&[Some(Tier::Fast), Some(Tier::Slow), None]),
    }
}
