//! Commands permitted to a read-only host: those that do not change the unit for others.
//!
//! Every command has its line here, so that a new one cannot be forgotten. Leaves out: reservations, which are
//! about hosts that may write ([`crate::reservations`]), and units that a command names beside its own, which
//! third-party copies check one by one.

use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::table::{Row, Run};
use crate::unit::Switches;

/// Effects of a command that are visible to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Changes {
    /// Nothing, or nothing but what belongs to the nexus itself.
    Nothing,
    /// The medium's content.
    Medium,
    /// Mode pages, states or reservations of the unit.
    Unit,
}

impl Run {
    /// Its effects that are visible to others.
    pub(crate) const fn changes(self) -> Changes {
        match self {
            Self::Write
            | Self::WriteAtomic
            | Self::WriteVerify
            | Self::WriteSame
            | Self::Unmap
            | Self::Sanitize
            | Self::WriteUsingToken
            | Self::CompareAndWrite
            | Self::OrWrite => Changes::Medium,
            Self::ModeSelect
            | Self::Reserve
            | Self::StartStop
            | Self::PersistentOut
            | Self::SetPortGroups => Changes::Unit,
            Self::TestUnitReady
            | Self::RequestSense
            | Self::Inquiry
            | Self::ModeSense
            // It releases what the nexus itself has reserved, perhaps before writing was taken from it.
            | Self::Release
            | Self::SendDiagnostic
            | Self::PreventAllow
            | Self::ReadCapacity
            | Self::ReadCapacity16
            | Self::Read
            | Self::Verify
            | Self::Prefetch
            | Self::Synchronize
            | Self::ReadDefects
            | Self::LogSense
            | Self::PersistentIn
            // The unit that is written to is named in the list, and checked there.
            | Self::ExtendedCopy
            | Self::ExtendedCopyLong
            | Self::PopulateToken
            | Self::LongCopyStatus
            | Self::TokenInformation
            | Self::CopyStatus
            | Self::CopyParameters
            | Self::LbaStatus
            | Self::ReportLuns
            | Self::ReportPortGroups
            | Self::ReportReferrals
            | Self::ReportOpcodes
            | Self::ReportFunctions => Changes::Nothing,
        }
    }
}

/// Whether START STOP UNIT would start a unit that is stopped, or stop one that is not.
fn starts_or_stops(nexus: &Nexus, cdb: &[u8; 16]) -> bool {
    let (condition, loads, starts) = (cdb[4] >> 4, cdb[4] & 0x02 != 0, cdb[4] & 0x01 != 0);
    condition == 0 && !loads && Switches::get(&nexus.unit.switches.stopped) == starts
}

/// Refuses what changes a unit for others where only reading was granted, or the medium where it is protected
/// (SPC-4 table 44, DATA PROTECT; SBC-3 4.12).
pub(crate) fn check(nexus: &Nexus, row: &Row, cdb: &[u8; 16]) -> Result<(), Sense> {
    match row.changes {
        Changes::Nothing => Ok(()),
        Changes::Medium => nexus.check_writable(),
        Changes::Unit if !nexus.read_only.get() => Ok(()),
        Changes::Unit if row.run == Run::StartStop && !starts_or_stops(nexus, cdb) => Ok(()),
        Changes::Unit => Err(Sense::WRITE_PROTECTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Access, ROWS};

    /// Commands that count as changes for reservations but do not affect other hosts (SPC-4 table 63, SBC-3 table 13).
    const HARMLESS: [Run; 5] = [
        Run::SendDiagnostic,
        Run::Synchronize,
        Run::ExtendedCopy,
        Run::ExtendedCopyLong,
        Run::CopyStatus,
    ];

    #[test]
    fn what_reservations_keep_from_others_needs_the_right_to_write() {
        for row in ROWS {
            let is_change = match row.access {
                Access::Write => !HARMLESS.contains(&row.run),
                Access::Persistent => row.run == Run::PersistentOut,
                _ => row.run == Run::Reserve,
            };
            let changes = row.changes != Changes::Nothing;
            assert_eq!(changes, is_change, "{:02x} {:?}", row.opcode, row.run);
        }
    }
}
