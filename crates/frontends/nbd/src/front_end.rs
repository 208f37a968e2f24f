//! The row of the daemon's table.

use crate::export::start;
use reactor::{FrontEnd, Parameter, SocketAccess};

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
            about: "connections at a time, 1 to 1024; 128 when not given. One more is refused with an error",
            required: false,
        },
        Parameter {
            name: "max-connections-per-address",
            about: "connections from one address at a time, or from one /64 of IPv6; when not given as many as \
                    max-connections, or 64 when that is not given either",
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
        SocketAccess::PARAMETERS[0],
        SocketAccess::PARAMETERS[1],
        SocketAccess::PARAMETERS[2],
    ],
    start,
};
