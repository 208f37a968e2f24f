//! Asymmetric access (ALUA, SPC-4 5.15): how well each port of a target serves a unit. REPORT and SET
//! TARGET PORT GROUPS (6.37, 6.45), REPORT REFERRALS (SBC-3 5.21), and what is refused where a port does
//! not serve.
//!
//! Each port is a group of its own. States belong to the unit as one target offers it; they are changed
//! by the administrator of the target, and by hosts.

use crate::attention::Attention;
use crate::execute::{Answer, Call};
use crate::fields::{put, u16_at, u32_at, u64_at};
use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::table::Run;
use crate::unit::{Unit, lock};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A state of a group (SPC-4 table 63).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AccessState {
    /// The way to take.
    Optimized,
    /// It serves, and another way is better.
    NonOptimized,
    /// It serves no data until its state is changed.
    Standby,
    /// It serves no data, and does not even answer what a standby port does.
    Unavailable,
    /// It answers no more than who is there. Hosts cannot set it.
    Offline,
}

impl AccessState {
    /// Every state with its name, as people write it.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("active-optimized", Self::Optimized),
        ("active-nonoptimized", Self::NonOptimized),
        ("standby", Self::Standby),
        ("unavailable", Self::Unavailable),
        ("offline", Self::Offline),
    ];

    fn code(self) -> u8 {
        match self {
            Self::Optimized => 0x0,
            Self::NonOptimized => 0x1,
            Self::Standby => 0x2,
            Self::Unavailable => 0x3,
            Self::Offline => 0xe,
        }
    }

    /// States that a host may set.
    fn parse(code: u8) -> Option<Self> {
        [
            Self::Optimized,
            Self::NonOptimized,
            Self::Standby,
            Self::Unavailable,
        ]
        .into_iter()
        .find(|state| state.code() == code)
    }

    /// Why a command fails in it, if it does (SPC-4 5.15.2.4 to 5.15.2.7).
    fn refuses(self, run: Run) -> Option<Sense> {
        let always = matches!(
            run,
            Run::Inquiry
                | Run::ReportLuns
                | Run::RequestSense
                | Run::ReportPortGroups
                | Run::SetPortGroups
        );
        let in_standby = matches!(
            run,
            Run::LogSense
                | Run::ModeSense
                | Run::ModeSelect
                | Run::PersistentIn
                | Run::PersistentOut
                | Run::SendDiagnostic
                | Run::ReportOpcodes
                | Run::ReportFunctions
        );
        match self {
            Self::Optimized | Self::NonOptimized => None,
            Self::Standby => (!always && !in_standby).then_some(Sense::PORT_STANDBY),
            Self::Unavailable => (!always).then_some(Sense::PORT_UNAVAILABLE),
            Self::Offline => {
                let answers = matches!(run, Run::Inquiry | Run::ReportLuns | Run::RequestSense);
                (!answers).then_some(Sense::OFFLINE)
            }
        }
    }
}

/// How a state came about (SPC-4 table 302).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Changed {
    Never = 0,
    ByHost = 1,
    ByTarget = 2,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Group {
    /// The group's number, and its one port's.
    number: u16,
    state: AccessState,
    /// How the state came about: a [`Changed`].
    changed: Changed,
}

/// The groups of a unit, as one target offers it.
#[derive(Debug)]
pub struct PortGroups {
    groups: Mutex<Vec<Group>>,
    /// Every group serves data: no command needs to look further.
    all_serve: AtomicBool,
}

impl PortGroups {
    /// Groups of these numbers, with their states.
    pub fn new(states: impl IntoIterator<Item = (u16, AccessState)>) -> Self {
        let group = |(number, state)| Group {
            number,
            state,
            changed: Changed::Never,
        };
        let groups = Self {
            groups: Mutex::new(states.into_iter().map(group).collect()),
            all_serve: AtomicBool::new(false),
        };
        groups.refresh(&lock(&groups.groups));
        groups
    }

    fn refresh(&self, groups: &[Group]) {
        let serves = |group: &Group| group.state <= AccessState::NonOptimized;
        self.all_serve
            .store(groups.iter().all(serves), Ordering::Release);
    }

    /// Numbers of the groups, and of their ports.
    pub(crate) fn numbers(&self) -> Vec<u16> {
        lock(&self.groups)
            .iter()
            .map(|group| group.number)
            .collect()
    }

    /// The groups with their states.
    pub fn states(&self) -> Vec<(u16, AccessState)> {
        let groups = lock(&self.groups);
        groups
            .iter()
            .map(|group| (group.number, group.state))
            .collect()
    }

    /// Whether anything changed.
    fn set(&self, states: &[(u16, AccessState)], changed: Changed) -> bool {
        let mut groups = lock(&self.groups);
        let before = groups.clone();
        for group in groups.iter_mut() {
            let wanted = states.iter().find(|(number, _)| *number == group.number);
            if let Some((_, state)) = wanted {
                group.state = *state;
                group.changed = changed;
            }
        }
        self.refresh(&groups);
        let states = |groups: &[Group]| -> Vec<_> { groups.iter().map(|g| g.state).collect() };
        states(&groups) != states(&before)
    }

    /// Gives groups other states; those that are not named keep theirs. Every nexus of `unit` through
    /// `target` is notified (ASYMMETRIC ACCESS STATE CHANGED).
    pub fn change(&self, unit: &Unit, target: &str, states: &[(u16, AccessState)]) {
        if self.set(states, Changed::ByTarget) {
            let told = Attention::AccessStateChanged;
            unit.tell(told, |member| member.ports.target == target);
        }
    }

    /// Why a command through a port fails, if it does.
    pub(crate) fn refuses(&self, port: u16, run: Run) -> Option<Sense> {
        if self.all_serve.load(Ordering::Acquire) {
            return None;
        }
        let groups = lock(&self.groups);
        let group = groups.iter().find(|group| group.number == port)?;
        group.state.refuses(run)
    }
}

/// REPORT TARGET PORT GROUPS (SPC-4 tables 300 to 302).
pub(crate) fn report(call: &Call<'_>) -> Answer {
    let mut body = match call.cdb[1] >> 5 {
        0 => Vec::new(),
        // The extended header; no implicit transition takes time.
        1 => vec![0x10, 0, 0, 0],
        _ => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
    };
    for group in lock(&call.nexus.groups.groups).iter() {
        // Supported: offline, unavailable, standby, active either way. By whom it was set.
        body.extend([group.state.code(), 0x4f]);
        body.extend(group.number.to_be_bytes());
        body.extend([0, group.changed as u8, 0, 1, 0, 0]);
        body.extend(group.number.to_be_bytes());
    }
    let mut data = (body.len() as u32).to_be_bytes().to_vec();
    data.extend(body);
    Ok(call.give_cut(data, u32_at(call.cdb, 6) as usize))
}

/// SET TARGET PORT GROUPS (SPC-4 6.45): all of it, or nothing.
pub(crate) fn set(call: &Call<'_>) -> Answer {
    let nexus = call.nexus;
    let len = u32_at(call.cdb, 6) as usize;
    if len == 0 {
        return Ok(call.empty());
    }
    let list = call.data.as_bytes().unwrap_or(&[]).get(..len);
    let entries = list.and_then(|list| list.get(4..));
    let entries = entries.filter(|entries| entries.len().is_multiple_of(4));
    let entries = entries.ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    let known = nexus.groups.numbers();
    let mut states = Vec::new();
    for entry in entries.chunks_exact(4) {
        let (number, state) = (u16_at(entry, 2), AccessState::parse(entry[0] & 0x0f));
        let state = state.filter(|_| known.contains(&number));
        let named = states.iter().any(|(other, _)| *other == number);
        let state = state.filter(|_| !named);
        states.push((number, state.ok_or(Sense::INVALID_FIELD_IN_LIST)?));
    }
    if nexus.groups.set(&states, Changed::ByHost) {
        let own = &nexus.member;
        nexus.unit.tell(Attention::AccessStateChanged, |member| {
            member.number != own.number && member.ports.target == own.ports.target
        });
    }
    Ok(call.took(len as u64))
}

/// REPORT REFERRALS (SBC-3 5.21): one segment, the whole unit, with every group.
pub(crate) fn referrals(call: &Call<'_>) -> Answer {
    let nexus = call.nexus;
    let blocks = nexus.unit.size() / nexus.block_size();
    let first = u64_at(call.cdb, 2);
    if first >= blocks {
        return Err(Sense::LBA_OUT_OF_RANGE.into());
    }
    let groups = nexus.groups.states();
    let mut body = vec![0, 0, 0, groups.len() as u8];
    body.extend(0u64.to_be_bytes());
    body.extend((blocks - 1).to_be_bytes());
    for (number, state) in groups {
        body.extend([state.code(), 0]);
        body.extend(number.to_be_bytes());
    }
    let mut data = vec![0; 4];
    put(&mut data, 2, &(body.len() as u16).to_be_bytes());
    data.extend(body);
    Ok(call.give_cut(data, u32_at(call.cdb, 10) as usize))
}

/// The page of referrals (SBC-3 6.5.7): one segment.
pub(crate) fn referrals_page(_nexus: &Nexus) -> Vec<u8> {
    vec![0; 12]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_refuses_what_it_should() {
        use AccessState::{NonOptimized, Offline, Optimized, Standby, Unavailable};
        let all = [Optimized, NonOptimized, Standby, Unavailable, Offline];
        for (run, refused) in [
            (Run::Read, &[Standby, Unavailable, Offline][..]),
            (Run::TestUnitReady, &[Standby, Unavailable, Offline]),
            (Run::PersistentOut, &[Unavailable, Offline]),
            (Run::ModeSense, &[Unavailable, Offline]),
            (Run::SetPortGroups, &[Offline]),
            (Run::Inquiry, &[]),
        ] {
            let found: Vec<_> = all
                .into_iter()
                .filter(|state| PortGroups::new([(1, *state)]).refuses(1, run).is_some())
                .collect();
            assert_eq!(found, refused, "{run:?}");
        }
    }

    #[test]
    fn a_port_in_standby_leaves_the_others_as_they_are() {
        let groups = PortGroups::new([(1, AccessState::Optimized), (2, AccessState::Optimized)]);
        assert!(groups.set(&[(2, AccessState::Standby)], Changed::ByHost));
        assert!(
            !groups.set(&[(2, AccessState::Standby)], Changed::ByHost),
            "the same"
        );
        let refused = |port| groups.refuses(port, Run::Read);
        assert_eq!(refused(1), None);
        assert_eq!(refused(2), Some(Sense::PORT_STANDBY));
        assert!(groups.set(&[(2, AccessState::Optimized)], Changed::ByTarget));
        assert_eq!(refused(2), None);
    }
}
