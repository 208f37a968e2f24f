//! The row of the daemon's table.

use crate::export::start;
use reactor::{FrontEnd, Parameter};

/// Files of a folder.
pub const FRONT_END: FrontEnd = FrontEnd {
    name: "fuse",
    about: "a file in a folder: for local programs, loop devices, Samba and NFS",
    parameters: &[
        Parameter {
            name: "mount",
            about: "the folder, which exists and is empty; several exports may share it, each is \
                    the file of its name",
            required: true,
        },
        Parameter {
            name: "allow-other",
            about: "yes: users other than the daemon's may come in, as owner and mode of the file \
                    allow; no when not given",
            required: false,
        },
        Parameter {
            name: "mode",
            about: "permissions of the file, octal; 0600 when not given, 0400 of what may only be read",
            required: false,
        },
        Parameter {
            name: "owner",
            about: "number of the file's user; the daemon's when not given",
            required: false,
        },
        Parameter {
            name: "group",
            about: "number of the file's group; the daemon's when not given",
            required: false,
        },
    ],
    start,
};
