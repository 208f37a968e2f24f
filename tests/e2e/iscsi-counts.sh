#!/usr/bin/env bash
# Eight initiators count in overlapping blocks by COMPARE AND WRITE, with digests, over two portals' worth of sessions;
# their connections are cut at random, and the daemon is killed meanwhile. Every sum is exact.
# timeout: 120
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

port="$(free_port)"
lun="iscsi://127.0.0.1:$port/iqn.2026-11.io.convect:counts/0"
start_daemon
create_pool pool 768M 2G
for lba in 512 4096; do
  convect volume create "pool/counts$lba" --size 64M --lba $lba >/dev/null
  convect export create counts "pool/counts$lba" iscsi --portal "127.0.0.1:$port" >/dev/null
  say "blocks of $lba bytes"
  lab increments "$lun" --counts 300
  convect export delete counts --yes
done

say "the daemon is killed meanwhile"
convect export create counts pool/counts512 iscsi --portal "127.0.0.1:$port" >/dev/null
counts() { # COUNTS: as many, with two kills while it counts
  lab increments "$lun" --counts "$1" --seed 2 >counts.log 2>&1 &
  counting=$!
  # shellcheck disable=SC2064  # this one
  defer "kill $counting 2>/dev/null"
  killed=0
  for _ in 1 2; do
    wait_until 60 has_begun
    kill_daemon
    # It was not done yet if it has not ended though nobody answers.
    ! kill -0 "$counting" 2>/dev/null || killed=$((killed + 1))
    start_daemon
  done
  wait "$counting" || { cat counts.log; fail "a count was lost, or counted twice"; }
  cat counts.log
}
has_begun() { ! kill -0 "$counting" || [ "$(convect --json export show counts | field 'd["sessions"]')" -ge 4 ]; }
# On a machine that leaves this script waiting it may count to its end before a kill: then it counts further.
for number in 500 2000 8000 24000; do
  counts "$number"
  [ "$killed" -lt 2 ] || break
done
[ "$killed" = 2 ] || fail "it had counted to the end each time before the daemon was killed"
stop_daemon
