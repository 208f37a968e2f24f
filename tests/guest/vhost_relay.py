#!/usr/bin/env python3
"""Relays the vhost-user messages of User Mode Linux to an export: vhost_relay.py LISTEN_PATH EXPORT_PATH.

The kernel's driver virtio_uml differs from other front ends in two points, and both are translated here:
- It always sends a memory table with room for two regions, of which it fills one. An implementation that insists on
  the exact length rejects that, so the empty entry is cut off.
- It is notified of completions by a socket (User Mode Linux gets no signal from an eventfd). The export is given an
  eventfd, from which notifications are passed on.
Only messages, descriptors and notifications pass through: queues and data are memory that the kernel and the export
share. Serves one connection and ends with it."""

import os
import selectors
import socket
import struct
import sys

HEADER = struct.Struct("<III")
SET_MEM_TABLE = 5
SET_VRING_CALL = 13
REGION_BYTES = 32
DESCRIPTORS_MAX = 8


class Relay:
    def __init__(self, client, export):
        self.client, self.export = client, export
        # By queue: where the export notifies, and where the kernel waits for it.
        self.calls = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(client, selectors.EVENT_READ, self.pass_request)
        self.selector.register(export, selectors.EVENT_READ, self.pass_reply)

    def run(self):
        while True:
            for key, _ in self.selector.select():
                key.data()

    def receive(self, count):
        data = b""
        while len(data) < count:
            part = self.client.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def pass_request(self):
        """Passes one message on. Its descriptors come with its first byte."""
        head, descriptors, _, _ = socket.recv_fds(self.client, HEADER.size, DESCRIPTORS_MAX)
        if not head:
            raise EOFError
        head += self.receive(HEADER.size - len(head))
        request, flags, size = HEADER.unpack(head)
        payload = self.receive(size)
        if request == SET_MEM_TABLE:
            (regions,) = struct.unpack_from("<I", payload)
            payload = payload[: 8 + regions * REGION_BYTES]
        passed = descriptors
        if request == SET_VRING_CALL and descriptors:
            passed = [self.replace_call(payload[0], descriptors[0])]
            descriptors = []
        message = HEADER.pack(request, flags, len(payload)) + payload
        sent = socket.send_fds(self.export, [message], passed)
        self.export.sendall(message[sent:])
        for descriptor in descriptors:
            os.close(descriptor)

    def replace_call(self, queue, waiting):
        if queue in self.calls:
            old_event, old_waiting = self.calls.pop(queue)
            self.selector.unregister(old_event)
            os.close(old_event)
            os.close(old_waiting)
        event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.calls[queue] = (event, waiting)
        self.selector.register(event, selectors.EVENT_READ, lambda: self.notify(event, waiting))
        return event

    def notify(self, event, waiting):
        os.write(waiting, struct.pack("<Q", os.eventfd_read(event)))

    def pass_reply(self):
        data = self.export.recv(65536)
        if not data:
            raise EOFError
        self.client.sendall(data)


def main():
    listen_path, export_path = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(listen_path)
    listener.listen(1)
    client, _ = listener.accept()
    export = socket.socket(socket.AF_UNIX)
    export.connect(export_path)
    Relay(client, export).run()


if __name__ == "__main__":
    try:
        main()
    except (EOFError, ConnectionError):
        pass
