#!/usr/bin/env bash
# A guest survives kills of the daemon: its requests wait, reach the restarted daemon, and what was
# acknowledged is there in the end.
# timeout: 400
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

guest() { bash "$root/tests/guest/run.sh" "$@"; }
steps=150

start_daemon
create_pool pool 768M 2G
convect volume create pool/disk --size 1G
convect export create disk pool/disk vhost-user-blk --path "$work/disk.sock"
guest make disk.sock make files=8

say "a load, and three kills of the daemon beneath it"
guest load disk.sock load steps=$steps >load.log 2>&1 &
guest_pid=$!
defer "kill $guest_pid 2>/dev/null; wait $guest_pid 2>/dev/null"
for step in 20 60 100; do
  wait_until 200 grep -q "GUEST-STEP $step" load.log
  kill_daemon
  start_daemon
  say "killed after step $step and started again"
done
wait "$guest_pid" || { tail -n 20 load.log; fail "the guest did not survive"; }
say "another boot: every acknowledged step is there"
guest verify disk.sock verify steps=$steps
stop_daemon
