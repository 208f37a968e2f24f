//! The protocol's entry in the daemon's table.

use crate::export::start;
use reactor::{FrontEnd, Parameter};

/// Files in a directory.
pub const FRONT_END: FrontEnd = FrontEnd {
    name: "fuse",
    about: "a file in a directory: for local programs, loop devices, Samba and NFS",
    parameters: &[
        Parameter {
            name: "mount",
            about: "existing empty directory to mount on; several exports may share it, each is a \
             file with the export's name",
            required: true,
        },
        Parameter {
            name: "allow-other",
            about: "yes: permit access by other users than the daemon's, according to owner and \
             mode of the file; default: no",
            required: false,
        },
        Parameter {
            name: "mode",
            about: "permissions of the file, octal; default: 0600, read-only exports 0400",
            required: false,
        },
        Parameter {
            name: "owner",
            about: "numeric user id of the file; default: the daemon's",
            required: false,
        },
        Parameter {
            name: "group",
            about: "numeric group id of the file; default: the daemon's",
            required: false,
        },
    ],
    start,
};
