#!/usr/bin/env bash
# A real Linux initiator (the kernel's, open-iscsi, multipath-tools and sg3-utils in a guest): mutual CHAP with
# digests and a file system that outlives a kill of the daemon; two paths of which each is cut in turn; and
# reservations that fence.
# timeout: 600
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/guest/guests.sh
. "$root/tests/guest/guests.sh"

prefix=iqn.2026-11.io.convect

cat >secrets <<'TXT'
name host
secret host-secret-0001
mutual-name target
mutual-secret target-secret-01
TXT
chmod 600 secrets

start_daemon
create_pool pool 1G 2G
for name in session multipath fencing; do
  convect volume create "pool/$name" --size 512M >/dev/null
done
# The daemon that is started anew has to have the same ports.
session="$(free_port)" one="$(free_port)" two="$(free_port)"

say "mutual CHAP, a file system, and a kill of the daemon while it is written"
convect export create session pool/session iscsi --portal "127.0.0.1:$session" --chap "$work/secrets" >/dev/null
guest_start session network session host="10.0.2.2:$session" steps=60 target="$prefix:session"
guest_await session 200 "^GUEST-STEP 15"
kill_daemon
start_daemon
guest_finish session "the guest did not find what it wrote"
grep -q '^GUEST-DIGESTS 1 1' session.log || fail "there were no digests"
grep -q '^GUEST-DISK CONVECT' session.log || fail "it was another disk"

say "two paths, each cut in turn"
convect export create multipath pool/multipath iscsi --portal "127.0.0.1:$one,127.0.0.1:$two" >/dev/null
relay() { # LISTEN TARGET
  python3 "$root/tests/e2e/relay.py" "$1" "$2" &
  relay_pid=$!
  # shellcheck disable=SC2064  # this relay
  defer "kill -CONT $relay_pid 2>/dev/null; kill $relay_pid 2>/dev/null; wait $relay_pid 2>/dev/null"
  wait_until 20 bash -c "exec 9<>/dev/tcp/127.0.0.1/$1"
}
left="$(free_port)" right="$(free_port)" end="$(free_port)"
relay "$left" "$one"
left_pid=$relay_pid
relay "$right" "$two"
right_pid=$relay_pid
guest_start multipath network multipath one="10.0.2.2:$left" two="10.0.2.2:$right" end="10.0.2.2:$end" \
  target="$prefix:multipath"
# How many paths there are last, and how far the load is.
paths() { grep '^GUEST-PATHS' multipath.log | tail -n 1 | tr -dc 0-9; }
paths_are() {
  guest_runs multipath
  [ "$(paths)" = "$1" ]
}
step() { grep '^GUEST-STEP' multipath.log | tail -n 1 | tr -dc 0-9; }
is_at() {
  guest_runs multipath
  [ "$(step)" -ge "$1" ]
}
# It writes five files more.
goes_on() { wait_until 120 is_at $(($(step) + 5)); }
wait_until 200 paths_are 2
wait_until 60 is_at 3
say "the first swallows everything"
kill -STOP "$left_pid"
wait_until 120 paths_are 1
goes_on
kill -CONT "$left_pid"
wait_until 120 paths_are 2
say "the second is reset, and refuses"
kill "$right_pid"
wait_until 120 paths_are 1
goes_on
relay "$right" "$two"
wait_until 120 paths_are 2
goes_on
relay "$end" "$one"
guest_finish multipath "the guest saw an error, or did not find what it wrote"

say "reservations fence the other node"
convect export create fencing pool/fencing iscsi --portal "127.0.0.1:$one,127.0.0.1:$two" >/dev/null
guest fencing network fencing one="10.0.2.2:$one" two="10.0.2.2:$two" target="$prefix:fencing" >fencing.log 2>&1 ||
  { tail -n 40 fencing.log; fail "a node that was fenced wrote, or one that was not could not"; }
grep -q '^GUEST-FENCED the first' fencing.log
stop_daemon
