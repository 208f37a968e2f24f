#!/usr/bin/env bash
# The Linux kernel's NBD client, in a guest: a file system over several connections, with flush, FUA and discard; found
# again by another boot after a restart of the daemon; and a load beneath which the daemon is killed, whose requests
# wait for new connections.
# timeout: 400
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/guest/guests.sh
. "$root/tests/guest/guests.sh"

steps=120
port="$(free_port)"
disk="nbd:10.0.2.2:$port/disk"
sessions_are() {
  guest_runs "$1"
  [ "$(convect --json export show disk | field 'd["sessions"]')" = "$2" ]
}

start_daemon
create_pool pool 768M 2G
convect volume create pool/disk --size 1G
convect export create disk pool/disk nbd --listen "tcp:127.0.0.1:$port"
say "a file system over four connections"
guest_start make "$disk" make connections=4
wait_until 100 sessions_are make 4
guest_finish make "the guest could not use its disk"
grep -q "^GUEST-NBD sectors $((2 << 20)) cache write back fua 1 discard [1-9]" make.log || fail "the kernel sees another disk"
restart_daemon
say "another boot, after the daemon was restarted"
guest check "$disk" check

say "a load over two connections, and three kills of the daemon beneath it"
guest_start load "$disk" load steps=$steps connections=2 reconnect=yes
for step in 15 45 75; do
  guest_await load 200 "GUEST-STEP $step"
  kill_daemon
  start_daemon
  say "killed after step $step and started again"
done
guest_finish load "the guest saw an error"
reconnected=$(grep -c '^GUEST-RECONNECTED' load.log)
[ "$reconnected" -ge 3 ] || fail "connections were replaced only $reconnected times"
say "another boot: every acknowledged step is there"
guest verify "$disk" verify steps=$steps
stop_daemon
