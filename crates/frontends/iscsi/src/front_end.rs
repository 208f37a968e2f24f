//! The protocol's entry in the daemon's table.

use crate::export::start;
use reactor::{FrontEnd, Parameter};

/// iSCSI.
pub const FRONT_END: FrontEnd = FrontEnd {
    name: "iscsi",
    about: "iSCSI: for remote Linux, Windows and VMware hosts, over TCP",
    parameters: &[
        Parameter {
            name: "portal",
            about: "comma-separated portals ADDRESS:PORT, which exports may share; non-loopback \
             addresses require chap, or without-authentication",
            required: true,
        },
        Parameter {
            name: "target",
            about: "target name (iqn..., eui... or naa...); default: derived from the export's \
             name. Exports with the same target are units of one target",
            required: false,
        },
        Parameter {
            name: "lun",
            about: "logical unit number within the target, 0 to 255; default: 0",
            required: false,
        },
        Parameter {
            name: "groups",
            about: "comma-separated target portal group tags of the portals in order, 1 to 65535; \
             default: assigned and kept",
            required: false,
        },
        Parameter {
            name: "initiators",
            about: "comma-separated names of initiators that may log in; default: all",
            required: false,
        },
        Parameter {
            name: "addresses",
            about: "comma-separated addresses or ranges of initiators, like 192.0.2.0/24 and \
             2001:db8::/64; default: all",
            required: false,
        },
        Parameter {
            name: "states",
            about: "comma-separated ALUA states of portals, ADDRESS:PORT=STATE: active-optimized \
             (default), active-nonoptimized, standby, unavailable, offline",
            required: false,
        },
        Parameter {
            name: "connections",
            about: "maximum number of connections per session, 1 to 8; default: 8",
            required: false,
        },
        Parameter {
            name: "chap",
            about: "CHAP file, readable by its owner only, with lines `name NAME` and `secret \
             SECRET` that initiators must prove, and optionally `mutual-name NAME` and \
             `mutual-secret SECRET` of this target for mutual CHAP",
            required: false,
        },
        Parameter {
            name: "without-authentication",
            about: "`yes`: permit non-loopback hosts to log in without chap",
            required: false,
        },
        Parameter {
            name: "read-only",
            about: "`yes`: read-only for hosts",
            required: false,
        },
    ],
    start,
};
