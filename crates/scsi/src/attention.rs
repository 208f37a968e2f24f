//! Unit attentions: conditions reported to a nexus with its next command (SAM-5 5.14, SPC-4 table 49).

use crate::sense::Sense;

/// Something that happened to a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Attention {
    /// The nexus is new: power on, reset, or bus device reset occurred.
    PowerOn,
    /// The unit was reset.
    UnitReset,
    /// Another nexus aborted this nexus's commands.
    CommandsCleared,
    /// The protocol has ended some of this nexus's commands, with a connection say (RFC 7143, section 11.14).
    ClearedByProtocol,
    /// The volume has another size.
    CapacityChanged,
    /// A mode page was changed.
    ModeChanged,
    /// A port serves the unit better or worse than before.
    AccessStateChanged,
    /// The set of LUNs has changed.
    LunsChanged,
    /// This nexus's reservation was preempted.
    ReservationsPreempted,
    /// The reservation of which this nexus had a part is gone.
    ReservationsReleased,
    /// This nexus's registration was preempted.
    RegistrationsPreempted,
    /// The pool is filling.
    ThinThreshold,
}

impl Attention {
    pub(crate) fn sense(self) -> Sense {
        let (asc, ascq) = match self {
            Self::PowerOn => (0x29, 0x00),
            Self::UnitReset => (0x29, 0x03),
            Self::CommandsCleared => (0x2f, 0x00),
            Self::ClearedByProtocol => (0x47, 0x7f),
            Self::CapacityChanged => (0x2a, 0x09),
            Self::ModeChanged => (0x2a, 0x01),
            Self::AccessStateChanged => (0x2a, 0x06),
            Self::LunsChanged => (0x3f, 0x0e),
            Self::ReservationsPreempted => (0x2a, 0x03),
            Self::ReservationsReleased => (0x2a, 0x04),
            Self::RegistrationsPreempted => (0x2a, 0x05),
            Self::ThinThreshold => (0x38, 0x07),
        };
        Sense::attention(asc, ascq)
    }
}
