//! The row of the daemon's table.

use crate::export::start;
use reactor::{FrontEnd, Parameter};

/// Network block device.
pub const FRONT_END: FrontEnd = FrontEnd {
    name: "nbd",
    about: "network block device: for QEMU, nbd-client, libnbd and fio, on a Unix socket or TCP",
    parameters: &[
        Parameter {
            name: "listen",
            about: "where to listen: unix:PATH or tcp:ADDRESS:PORT; TCP is not encrypted, so only \
                    on a network that is trusted",
            required: true,
        },
        Parameter {
            name: "max-connections",
            about: "connections at a time, 1 to 1024; 16 when not given",
            required: false,
        },
        Parameter {
            name: "mode",
            about: "permissions of a Unix socket's file, octal; connecting needs the right to write; 0660 when not given",
            required: false,
        },
        Parameter {
            name: "owner",
            about: "user of a Unix socket's file, by name or number; the daemon's when not given",
            required: false,
        },
        Parameter {
            name: "group",
            about: "group of a Unix socket's file, by name or number; the daemon's when not given",
            required: false,
        },
    ],
    start,
};
