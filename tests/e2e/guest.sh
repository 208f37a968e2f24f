#!/usr/bin/env bash
# Real guests: the volume as a vhost-user-blk disk of Linux kernels. User Mode Linux makes a file system by its own
# front end, fills it and finds everything again after a reboot; QEMU's PCI device finds it after a restart of the
# daemon, and sees the volume grow; and User Mode Linux grows the file system.
# timeout: 400
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/guest/guests.sh
. "$root/tests/guest/guests.sh"

start_daemon
create_pool pool 768M 2G
convect volume create pool/disk --size 1G
convect export create disk pool/disk vhost-user-blk --path "$work/disk.sock"
say "first boot: make and fill"
guest first vhost:disk.sock make
say "second boot: check"
guest second vhost:disk.sock check
restart_daemon

say "third boot, QEMU, after the daemon was restarted: check, and the volume grows under the running guest"
guest_start third disk.sock check-resize sectors=$((3 << 20))
guest_await third 150 GUEST-WAITS-FOR-SIZE
convect volume resize pool/disk 1536M
guest_finish third "the guest did not find what it wrote, or did not see its disk grow"

say "fourth boot: the volume grows again, and the file system with it"
guest_start fourth vhost:disk.sock check-resize sectors=$((4 << 20)) grow=yes
guest_await fourth 150 GUEST-WAITS-FOR-SIZE
convect volume resize pool/disk 2G
guest_finish fourth "the guest did not see its disk grow, or its file system did not"
stop_daemon
