#!/usr/bin/env python3
"""Passes a TCP connection's bytes on, so that a test can cut it: relay.py LISTEN_PORT TARGET_PORT [--pdus FILE].

Listens at 127.0.0.1. Stopped by SIGSTOP it is a network that swallows everything; ended by SIGTERM, one whose
connections are reset. With --pdus each iSCSI PDU becomes a line of FILE: its direction, connection and kind, its header in
hexadecimal, and the beginning of its data. Only for sessions without digests: it does not read their negotiation."""

import argparse
import selectors
import socket
import struct

KINDS = {
    0x00: "NOP-Out", 0x01: "Command", 0x02: "Function", 0x03: "Login", 0x04: "Text", 0x05: "Data-Out", 0x06: "Logout",
    0x10: "SNACK", 0x20: "NOP-In", 0x21: "Response", 0x22: "Function-Response", 0x23: "Login-Response",
    0x24: "Text-Response", 0x25: "Data-In", 0x26: "Logout-Response", 0x31: "R2T", 0x32: "Async", 0x3F: "Reject",
}  # fmt: skip
# Bytes of data that are written out.
DATA_SHOWN = 64
# Bytes that wait to be passed on before no more is read.
WAITING_MAX = 1 << 20


class Decoder:
    """One direction of a connection, cut into PDUs."""

    def __init__(self, out, prefix):
        self.out, self.prefix, self.buffer = out, prefix, bytearray()

    def feed(self, data):
        self.buffer += data
        while len(self.buffer) >= 48:
            head = bytes(self.buffer[:48])
            additional = head[4] * 4
            length = int.from_bytes(head[5:8], "big")
            end = 48 + additional + (length + 3) // 4 * 4
            if len(self.buffer) < end:
                return
            body = bytes(self.buffer[48 + additional : 48 + additional + length])
            del self.buffer[:end]
            kind = KINDS.get(head[0] & 0x3F, "unknown")
            shown = body[:DATA_SHOWN].hex() + ("..." if length > DATA_SHOWN else "")
            print(f"{self.prefix} {kind} {head.hex(' ', 4)} | {length} {shown}", file=self.out, flush=True)


class Half:
    """From one socket to another."""

    def __init__(self, source, sink, decoder):
        self.source, self.sink, self.decoder, self.waiting = source, sink, decoder, bytearray()


class Relay:
    def __init__(self, listen, target, out):
        self.target, self.out, self.count = target, out, 0
        self.selector = selectors.DefaultSelector()
        self.halves = {}
        self.listener = socket.create_server(("127.0.0.1", listen), backlog=128)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)

    def accept(self):
        near, _ = self.listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            near.close()
            return
        self.count += 1
        for source, sink, way in ((near, far, ">"), (far, near, "<")):
            source.setblocking(False)
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            decoder = Decoder(self.out, f"{way} {self.count}") if self.out else None
            self.halves[source] = Half(source, sink, decoder)
            self.selector.register(source, selectors.EVENT_READ)

    def close(self, half):
        """Ends both directions at once, with a reset: what was not passed on is lost."""
        for end in (half.source, half.sink):
            if self.halves.pop(end, None) is None:
                continue
            if end.fileno() in self.selector.get_map():
                self.selector.unregister(end)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()

    def watch(self, half):
        """Looks at a socket for reading while there is room for it, for writing while there is something."""
        events = selectors.EVENT_READ if len(half.waiting) < WAITING_MAX else 0
        if self.halves[half.sink].waiting:
            events |= selectors.EVENT_WRITE
        known = self.selector.get_map().get(half.source.fileno())
        if known and not events:
            self.selector.unregister(half.source)
        elif known and known.events != events:
            self.selector.modify(half.source, events)
        elif not known and events:
            self.selector.register(half.source, events)

    def write(self, half):
        if half.waiting:
            sent = half.sink.send(half.waiting)
            del half.waiting[:sent]

    def read(self, half):
        data = half.source.recv(1 << 18)
        if not data:
            raise ConnectionError("closed")
        if half.decoder:
            half.decoder.feed(data)
        half.waiting += data
        self.write(half)

    def pass_on(self, end, events):
        half = self.halves.get(end)
        if half is None:
            return
        back = self.halves[half.sink]
        for what, which, wanted in ((self.read, half, selectors.EVENT_READ), (self.write, back, selectors.EVENT_WRITE)):
            if events & wanted:
                try:
                    what(which)
                except BlockingIOError:
                    pass
                except OSError:
                    self.close(half)
                    return
        self.watch(half)
        self.watch(back)

    def run(self):
        while True:
            for key, events in self.selector.select():
                if key.fileobj is self.listener:
                    self.accept()
                else:
                    self.pass_on(key.fileobj, events)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("listen", type=int)
    parser.add_argument("target", type=int)
    parser.add_argument("--pdus")
    given = parser.parse_args()
    out = open(given.pdus, "w") if given.pdus else None
    Relay(given.listen, given.target, out).run()


main()
