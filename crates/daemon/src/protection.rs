//! How many drive failures data survives: from the layouts of vdrives and the state of their drives.
//!
//! A volume is spread over all vdrives of its pool, and the fast tier has the maps and the journal
//! of all volumes besides dirty data, so a pool survives what its weakest vdrive survives.

use api::v1::Protection;
use engine::{LayoutSpec, VdriveStatus};

/// Failures that data survives under a layout, from the states of the vdrive's drives.
fn of_layout<'a>(layout: LayoutSpec, states: impl Iterator<Item = &'a str>) -> Protection {
    if layout != LayoutSpec::Mirror {
        return Protection::default();
    }
    let (mut members, mut current) = (0u32, 0u32);
    for state in states {
        members += 1;
        current += u32::from(state == "online");
    }
    Protection {
        survives_failures: current.saturating_sub(1),
        by_design: members.saturating_sub(1),
    }
}

/// What all parts survive; 0 without parts.
fn weakest(parts: impl Iterator<Item = Protection>) -> Protection {
    let least = parts.reduce(|one, other| Protection {
        survives_failures: one.survives_failures.min(other.survives_failures),
        by_design: one.by_design.min(other.by_design),
    });
    least.unwrap_or_default()
}

/// Failures of a vdrive's drives that its data survives.
pub fn of_vdrive(vdrive: &VdriveStatus) -> Protection {
    let states = vdrive.drives.iter().map(|drive| drive.state.as_str());
    of_layout(vdrive.layout, states)
}

/// Drive failures that all data on the vdrives of a pool survives.
pub fn of_vdrives(vdrives: &[VdriveStatus]) -> Protection {
    weakest(vdrives.iter().map(of_vdrive))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(layout: LayoutSpec, states: &[&str]) -> (u32, u32) {
        let told = of_layout(layout, states.iter().copied());
        (told.survives_failures, told.by_design)
    }

    #[test]
    fn mirror_survives_the_failure_of_all_but_one_current_member() {
        let mirror = |states: &[&str]| told(LayoutSpec::Mirror, states);
        assert_eq!(mirror(&["online", "online"]), (1, 1));
        assert_eq!(mirror(&["online", "online", "online"]), (2, 2));
        assert_eq!(mirror(&["online", "syncing", "online"]), (1, 2));
        assert_eq!(mirror(&["out", "online"]), (0, 1));
        assert_eq!(mirror(&["missing", "offline"]), (0, 1));
    }

    #[test]
    fn other_layouts_survive_no_failure() {
        let two = ["online", "online"];
        assert_eq!(told(LayoutSpec::Concat, &two), (0, 0));
        assert_eq!(told(LayoutSpec::Stripe { chunk: 65_536 }, &two), (0, 0));
    }

    #[test]
    fn pool_survives_what_its_weakest_vdrive_survives() {
        let part = |survives_failures, by_design| Protection {
            survives_failures,
            by_design,
        };
        let weakest = |parts: &[Protection]| weakest(parts.iter().copied());
        assert_eq!(weakest(&[part(2, 2), part(1, 1)]), part(1, 1));
        assert_eq!(weakest(&[part(0, 1), part(2, 2)]), part(0, 1));
        assert_eq!(weakest(&[part(1, 1), part(0, 0)]), part(0, 0));
        assert_eq!(weakest(&[]), part(0, 0));
    }
}
