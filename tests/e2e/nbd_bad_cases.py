"""What a hostile or broken NBD client sends, and what it has to be answered.

Each case has a connection of its own; none may hurt the daemon or another connection. The
numbers are those of the NBD protocol's specification (doc/proto.md).
"""

import socket
import struct
import sys

PATH, EXPORT = sys.argv[1], sys.argv[2].encode()
OPTION, REPLY = 0x49484156454F5054, 0x0003E889045565A9
REQUEST, SIMPLE = 0x25609513, 0x67446698
EXPORT_NAME, ABORT, LIST, STARTTLS, INFO, GO = 1, 2, 3, 5, 6, 7
REP_ACK, REP_SERVER, REP_INFO = 1, 2, 3
REP_UNSUP, REP_POLICY, REP_INVALID, REP_UNKNOWN = 0x80000001, 0x80000002, 0x80000003, 0x80000006
READ, WRITE, TRIM = 0, 1, 4
EINVAL, ENOSPC = 22, 28


class Closed(Exception):
    """The server ended the connection."""


class Connection:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(PATH)
        assert self.take(8) == b"NBDMAGIC" and self.take(8) == struct.pack(">Q", OPTION)
        assert struct.unpack(">H", self.take(2))[0] & 1, "not fixed newstyle"

    def take(self, length):
        data = b""
        while len(data) < length:
            try:
                part = self.socket.recv(length - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Closed
            data += part
        return data

    def send(self, *parts):
        try:
            self.socket.sendall(b"".join(parts))
        except (BrokenPipeError, ConnectionResetError):
            pass

    def hello(self, flags=3):
        self.send(struct.pack(">I", flags))
        return self

    def option(self, number, data=b"", length=None):
        length = len(data) if length is None else length
        self.send(struct.pack(">QII", OPTION, number, length), data)

    def answers(self):
        """Replies to an option, up to and with its last."""
        kinds = []
        while True:
            magic, _, kind, length = struct.unpack(">QIII", self.take(20))
            assert magic == REPLY
            kinds.append((kind, self.take(length)))
            if kind not in (REP_SERVER, REP_INFO):
                return kinds

    def go(self):
        self.hello().option(GO, struct.pack(">I", len(EXPORT)) + EXPORT + b"\0\0")
        assert self.answers()[-1][0] == REP_ACK
        return self

    def request(self, command, offset, length, flags=0, data=b"", magic=REQUEST):
        self.send(struct.pack(">IHHQQI", magic, flags, command, 77, offset, length), data)

    def error(self):
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        assert magic == SIMPLE and cookie == 77
        return error

    def is_closed(self):
        try:
            self.take(1)
            return False
        except Closed:
            return True


def option_answer(number, data=b""):
    connection = Connection().hello()
    connection.option(number, data)
    kind = connection.answers()[-1][0]
    # After a refusal the haggling goes on.
    connection.option(LIST)
    assert connection.answers()[-1][0] == REP_ACK, "the connection is of no use after a refusal"
    return kind


def go_to(name):
    return struct.pack(">I", len(name)) + name + b"\0\0"


def handshake_cases():
    assert option_answer(99) == REP_UNSUP
    assert option_answer(STARTTLS) in (REP_UNSUP, REP_POLICY)
    assert option_answer(STARTTLS, b"data") in (REP_UNSUP, REP_POLICY, REP_INVALID)
    assert option_answer(LIST, b"data") == REP_INVALID
    assert option_answer(GO, go_to(b"no such export")) == REP_UNKNOWN
    assert option_answer(INFO, go_to(b"")) in (REP_UNKNOWN, REP_ACK)
    assert option_answer(GO, b"") == REP_INVALID
    assert option_answer(GO, struct.pack(">I", 0xFFFFFFFF) + b"x\0\0") == REP_INVALID
    assert option_answer(GO, struct.pack(">I", len(EXPORT)) + EXPORT + b"\0\7") == REP_INVALID

    connection = Connection().hello()
    connection.option(ABORT)
    assert connection.answers()[-1][0] == REP_ACK and connection.is_closed()

    # What ends the connection: unknown flags, a wrong first word, an option beyond all bounds,
    # and an export name that does not exist, for which the old option has no error.
    assert Connection().hello(flags=0xFFFF).is_closed()
    connection = Connection().hello()
    connection.send(struct.pack(">QII", 0xBAD, GO, 0))
    assert connection.is_closed()
    connection = Connection().hello()
    connection.option(EXPORT_NAME, b"no such export")
    assert connection.is_closed()
    connection = Connection().hello()
    connection.option(GO, b"", length=0xFFFFFFFF)
    connection.socket.shutdown(socket.SHUT_WR)
    try:
        assert connection.answers()[-1][0] & 0x80000000
    except Closed:
        pass


def transmission_cases():
    size = struct.unpack(">Q", size_of_export())[0]
    for command, offset, length, allowed in [
        (READ, size, 4096, {EINVAL}),
        (READ, size - 512, 4096, {EINVAL}),
        (READ, 0xFFFFFFFFFFFFF000, 4096, {EINVAL}),
        (TRIM, size, 4096, {EINVAL, ENOSPC}),
        (1234, 0, 0, {EINVAL}),
    ]:
        connection = Connection().go()
        connection.request(command, offset, length)
        assert connection.error() in allowed, (command, offset, length)
        connection.request(READ, 0, 512)
        assert connection.error() == 0 and len(connection.take(512)) == 512

    connection = Connection().go()
    connection.request(WRITE, size, 512, data=b"z" * 512)
    assert connection.error() in (ENOSPC, EINVAL)
    connection.request(READ, 0, 512)
    assert connection.error() == 0

    # A wrong first word, and a write larger than any buffer, end the session only.
    connection = Connection().go()
    connection.request(READ, 0, 512, magic=0xBAD)
    assert connection.is_closed()
    connection = Connection().go()
    connection.request(WRITE, 0, 0xFFFFFE00)
    connection.send(b"z" * 65536)
    connection.socket.shutdown(socket.SHUT_WR)
    try:
        assert connection.error() != 0
    except Closed:
        pass


def size_of_export():
    connection = Connection().hello()
    connection.option(INFO, go_to(EXPORT))
    for kind, data in connection.answers():
        if kind == REP_INFO and data[:2] == b"\0\0":
            return data[2:10]
    raise AssertionError("no size was told")


def abandoned():
    """Clients that connect, say half of something, and leave."""
    for words in (b"", b"\0", struct.pack(">I", 3), struct.pack(">IQ", 3, OPTION)):
        connection = Connection()
        connection.send(words)
        connection.socket.close()


handshake_cases()
transmission_cases()
abandoned()
print("every bad case was answered as it should be")
