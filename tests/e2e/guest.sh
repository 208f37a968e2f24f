#!/usr/bin/env bash
# A real guest: QEMU boots a Debian kernel with the volume as a vhost-user-blk disk, makes a file
# system, fills it, and finds everything again after a reboot and after a restart of the daemon.
# timeout: 400
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

guest() { bash "$root/tests/guest/run.sh" "$@"; }

start_daemon
create_pool pool 768M 2G
convect volume create pool/disk --size 1G
convect export create disk pool/disk vhost-user-blk --path "$work/disk.sock"
say "first boot: make and fill"
guest first disk.sock make
say "second boot: check"
guest second disk.sock check
restart_daemon
say "third boot, after the daemon was restarted: check"
guest third disk.sock check

say "the volume grows under a running guest"
guest growing disk.sock resize sectors=$((3 << 20)) >growing.log 2>&1 &
guest_pid=$!
defer "kill $guest_pid 2>/dev/null; wait $guest_pid 2>/dev/null"
wait_until 150 grep -q GUEST-WAITS-FOR-SIZE growing.log
convect volume resize pool/disk 1536M
wait "$guest_pid" || { tail -n 20 growing.log; fail "the guest did not see its disk grow"; }
stop_daemon
