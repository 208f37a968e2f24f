//! The row of the daemon's table.

use crate::export::start;
use reactor::{FrontEnd, Parameter};

/// Network block device.
pub const FRONT_END: FrontEnd = FrontEnd {
    name: "nbd",
    about: "network block device: for QEMU, nbd-client, libnbd and fio, on a Unix socket or TCP, also by TLS",
    parameters: &[
        Parameter {
            name: "listen",
            about: "where to listen: unix:PATH or tcp:ADDRESS:PORT. Beyond the loopback it needs \
                    tls-certificate, tls-key and tls-client-ca, or without-authentication",
            required: true,
        },
        Parameter {
            name: "max-connections",
            about: "connections at a time, 1 to 1024; 64 when not given. One more is refused with an error",
            required: false,
        },
        Parameter {
            name: "tls-certificate",
            about: "a file with the server's certificate and those between it and its authority (PEM): \
                    clients have to use TLS 1.3",
            required: false,
        },
        Parameter {
            name: "tls-key",
            about: "a file with the certificate's private key (PEM), which not everybody may read",
            required: false,
        },
        Parameter {
            name: "tls-client-ca",
            about: "a file with certificates of authorities (PEM): clients need a certificate that one of \
                    them signed",
            required: false,
        },
        Parameter {
            name: "tls",
            about: "`required` (when not given), or `optional`: clients may do without TLS",
            required: false,
        },
        Parameter {
            name: "without-authentication",
            about: "`yes`: anybody who reaches an address beyond the loopback may use the volume",
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
