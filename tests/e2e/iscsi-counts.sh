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
lab increments "$lun" --counts 1500 --seed 2 >counts.log 2>&1 &
counting=$!
defer "kill $counting 2>/dev/null"
has_begun() { [ "$(convect --json export show counts | field 'd["sessions"]')" -ge 4 ]; }
for _ in 1 2; do
  wait_until 60 has_begun
  kill -0 "$counting" 2>/dev/null || fail "it had counted to the end before the daemon was killed"
  kill_daemon
  start_daemon
done
wait "$counting" || { cat counts.log; fail "a count was lost, or counted twice"; }
cat counts.log
stop_daemon
