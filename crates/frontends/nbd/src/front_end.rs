//! The protocol's entry in the daemon's table.

use crate::export::start;
use reactor::{FrontEnd, Parameter, SocketAccess};

/// Network block device.
pub const FRONT_END: FrontEnd = FrontEnd {
    name: "nbd",
    about: "network block device: for QEMU, nbd-client, libnbd and fio, over a Unix socket, TCP or TLS",
    parameters: &[
        Parameter {
            name: "listen",
            about: "listen address: unix:PATH or tcp:ADDRESS:PORT; non-loopback addresses require \
             tls-certificate, tls-key and tls-client-ca, or without-authentication",
            required: true,
        },
        Parameter {
            name: "max-connections",
            about: "maximum number of connections, 1 to 1024; default: 128. Further ones are refused with an error",
            required: false,
        },
        Parameter {
            name: "max-connections-per-address",
            about: "maximum number of connections per address, or per IPv6 /64; default: \
             max-connections, or 64 if that is not given",
            required: false,
        },
        Parameter {
            name: "tls-certificate",
            about: "file with the server's certificate chain (PEM): clients must use TLS 1.3",
            required: false,
        },
        Parameter {
            name: "tls-key",
            about: "file with the certificate's private key (PEM), not readable by everybody",
            required: false,
        },
        Parameter {
            name: "tls-client-ca",
            about: "file with CA certificates (PEM): clients need a certificate signed by one of \
             them",
            required: false,
        },
        Parameter {
            name: "tls",
            about: "`required` (default), or `optional`: clients may connect without TLS",
            required: false,
        },
        Parameter {
            name: "without-authentication",
            about: "`yes`: permit everybody who can reach a non-loopback address to use the volume",
            required: false,
        },
        SocketAccess::PARAMETERS[0],
        SocketAccess::PARAMETERS[1],
        SocketAccess::PARAMETERS[2],
    ],
    start,
};
