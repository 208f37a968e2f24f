"""Attaches an export as /dev/nbd0 by netlink, and replaces connections that break:
nbd_attach.py ADDRESS PORT EXPORT CONNECTIONS

The kernel keeps the requests of a broken connection for DEAD_CONNECTION seconds and sends them again over another one,
REQUEST_TIMEOUT seconds after they were sent first. It is given new connections here when it reports one as dead.
Runs until it is killed. Runs in the guest, with the modules of Debian's python3.11-minimal."""

import socket
import struct
import sys
import time

REQUEST_TIMEOUT = 5
DEAD_CONNECTION = 300

# linux/genetlink.h and linux/nbd-netlink.h
NETLINK_GENERIC, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP = 16, 270, 1
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME, CTRL_ATTR_MCAST_GROUPS = 16, 3, 1, 2, 7
CTRL_ATTR_MCAST_GRP_ID = 2
NLM_F_REQUEST, NLM_F_ACK, NLMSG_ERROR, NLA_F_NESTED = 1, 4, 2, 0x8000
NBD_CMD_CONNECT, NBD_CMD_RECONFIGURE, NBD_CMD_LINK_DEAD = 1, 3, 4
(NBD_ATTR_INDEX, NBD_ATTR_SIZE_BYTES, NBD_ATTR_BLOCK_SIZE_BYTES, NBD_ATTR_TIMEOUT, NBD_ATTR_SERVER_FLAGS) = range(1, 6)
NBD_ATTR_SOCKETS, NBD_ATTR_DEAD_CONN_TIMEOUT = 7, 8
NBD_SOCK_ITEM = NBD_SOCK_FD = 1

# The NBD protocol.
IHAVEOPT, OPTION_REPLY = 0x49484156454F5054, 0x3E889045565A9
FIXED_NEWSTYLE_NO_ZEROES = 3
OPT_GO, REP_ACK, REP_INFO, INFO_EXPORT = 7, 1, 3, 0


def receive(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the export closed the connection")
        data += part
    return data


def connect(address, port, export):
    """A connection that is ready for requests, with the export's size and flags."""
    connection = socket.create_connection((address, port), timeout=20)
    receive(connection, 18)
    name = export.encode()
    data = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
    connection.sendall(
        struct.pack(">I", FIXED_NEWSTYLE_NO_ZEROES) + struct.pack(">QII", IHAVEOPT, OPT_GO, len(data)) + data
    )
    size = flags = None
    while True:
        magic, _, reply, length = struct.unpack(">QIII", receive(connection, 20))
        data = receive(connection, length)
        if magic != OPTION_REPLY or reply not in (REP_ACK, REP_INFO):
            raise ConnectionError(f"the export replied {reply:#x}")
        if reply == REP_ACK:
            # The kernel waits in it as long as it takes.
            connection.settimeout(None)
            return connection, size, flags
        if struct.unpack_from(">H", data)[0] == INFO_EXPORT:
            size, flags = struct.unpack_from(">QH", data, 2)


def attribute(kind, payload):
    data = struct.pack("=HH", 4 + len(payload), kind) + payload
    return data + bytes(-len(data) % 4)


def attributes(data):
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) // 4 * 4 :]


def nested(kind, payload):
    return attribute(kind | NLA_F_NESTED, payload)


def u32(value):
    return struct.pack("=I", value)


def u64(value):
    return struct.pack("=Q", value)


class Generic:
    """A generic netlink socket."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.socket.bind((0, 0))

    def message(self):
        """The next message: its type and what follows its header."""
        data = self.socket.recv(65536)
        length, kind = struct.unpack_from("=IH", data)
        return kind, data[16:length]

    def request(self, family, command, payload, flags=NLM_F_ACK):
        body = struct.pack("=BBH", command, 1, 0) + payload
        self.socket.send(struct.pack("=IHHII", 16 + len(body), family, NLM_F_REQUEST | flags, 0, 0) + body)
        answer = None
        while True:
            kind, data = self.message()
            if kind == NLMSG_ERROR:
                (error,) = struct.unpack_from("=i", data)
                if error:
                    raise OSError(-error, f"netlink command {command} failed")
                return answer
            answer = dict(attributes(data[4:]))

    def family(self, name):
        """A family's number and its first multicast group."""
        found = self.request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME, name.encode() + b"\0"))
        (number,) = struct.unpack("=H", found[CTRL_ATTR_FAMILY_ID])
        _, first = next(attributes(found[CTRL_ATTR_MCAST_GROUPS]))
        (group,) = struct.unpack("=I", dict(attributes(first))[CTRL_ATTR_MCAST_GRP_ID])
        return number, group


def sockets(connections):
    items = (nested(NBD_SOCK_ITEM, attribute(NBD_SOCK_FD, u32(c.fileno()))) for c in connections)
    return nested(NBD_ATTR_SOCKETS, b"".join(items))


def main():
    address, port, export, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    events, commands = Generic(), Generic()
    nbd, group = commands.family("nbd")
    events.socket.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
    opened = [connect(address, port, export) for _ in range(count)]
    _, size, flags = opened[0]
    timeouts = attribute(NBD_ATTR_TIMEOUT, u64(REQUEST_TIMEOUT)) + attribute(
        NBD_ATTR_DEAD_CONN_TIMEOUT, u64(DEAD_CONNECTION)
    )
    index = attribute(NBD_ATTR_INDEX, u32(0))
    commands.request(
        nbd,
        NBD_CMD_CONNECT,
        index
        + attribute(NBD_ATTR_SIZE_BYTES, u64(size))
        + attribute(NBD_ATTR_BLOCK_SIZE_BYTES, u64(4096))
        + attribute(NBD_ATTR_SERVER_FLAGS, u64(flags))
        + timeouts
        + sockets([connection for connection, _, _ in opened]),
    )
    # The kernel has them now.
    for connection, _, _ in opened:
        connection.close()
    while True:
        kind, data = events.message()
        if kind != nbd or data[0] != NBD_CMD_LINK_DEAD:
            continue
        while True:
            try:
                connection, _, _ = connect(address, port, export)
                break
            except OSError:
                time.sleep(0.2)
        with connection:
            commands.request(nbd, NBD_CMD_RECONFIGURE, index + timeouts + sockets([connection]))
        print("GUEST-RECONNECTED", flush=True)


if __name__ == "__main__":
    main()
