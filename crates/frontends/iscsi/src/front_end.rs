//! The row of the daemon's table.

use crate::export::start;
use reactor::{FrontEnd, Parameter};

/// iSCSI.
pub const FRONT_END: FrontEnd = FrontEnd {
    name: "iscsi",
    about: "iSCSI: for other machines, Linux, Windows and VMware, on TCP",
    parameters: &[
        Parameter {
            name: "portal",
            about: "where to listen: ADDRESS:PORT, several with commas; exports may share them. \
                    Beyond the loopback it needs chap, or without-authentication",
            required: true,
        },
        Parameter {
            name: "target",
            about: "the target's name, iqn... or eui... or naa...; made of the export's name when \
                    not given. Exports of one name are units of one target",
            required: false,
        },
        Parameter {
            name: "lun",
            about: "the unit's number within its target, 0 to 255; 0 when not given",
            required: false,
        },
        Parameter {
            name: "groups",
            about: "the numbers of the portals' target port groups, in their order, 1 to 65535, with commas; \
                    chosen and kept when not given",
            required: false,
        },
        Parameter {
            name: "initiators",
            about: "names of the initiators that may log in, with commas; every one when not given",
            required: false,
        },
        Parameter {
            name: "addresses",
            about: "where initiators may come from: addresses, or ranges like 192.0.2.0/24 and \
                    2001:db8::/64, with commas; from everywhere when not given",
            required: false,
        },
        Parameter {
            name: "states",
            about: "how well portals serve the unit (ALUA): ADDRESS:PORT=STATE with commas; \
                    active-optimized when not given, active-nonoptimized, standby, unavailable, offline",
            required: false,
        },
        Parameter {
            name: "connections",
            about: "how many connections one session may have, 1 to 8; 8 when not given",
            required: false,
        },
        Parameter {
            name: "chap",
            about: "a file that only its owner may read, with lines `name NAME` and `secret SECRET` \
                    that initiators prove, and `mutual-name NAME` and `mutual-secret SECRET` that \
                    this target proves to those who ask",
            required: false,
        },
        Parameter {
            name: "without-authentication",
            about: "`yes`: hosts beyond the loopback may log in without chap",
            required: false,
        },
        Parameter {
            name: "read-only",
            about: "`yes`: hosts may only read",
            required: false,
        },
    ],
    start,
};
