#!/usr/bin/env bash
# A guest survives kills of the daemon: its requests wait, reach the restarted daemon, and what was
# acknowledged is there in the end. The load runs in QEMU, whose front end connects again; another kernel makes the
# file system and checks it.
# timeout: 400
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/guest/guests.sh
. "$root/tests/guest/guests.sh"

steps=150

start_daemon
create_pool pool 768M 2G
convect volume create pool/disk --size 1G
convect export create disk pool/disk vhost-user-blk --path "$work/disk.sock"
guest make vhost:disk.sock make files=8

say "a load, and three kills of the daemon beneath it"
guest_start load disk.sock load steps=$steps
for step in 20 60 100; do
  guest_await load 200 "GUEST-STEP $step"
  kill_daemon
  start_daemon
  say "killed after step $step and started again"
done
guest_finish load "the guest did not survive"
say "another boot: every acknowledged step is there"
guest verify vhost:disk.sock verify steps=$steps
stop_daemon
