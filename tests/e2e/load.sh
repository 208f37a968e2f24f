#!/usr/bin/env bash
# The laboratory's load generator, by each way to a disk: every byte is checked against a real daemon,
# what another one wrote is noticed, and what cannot be is refused with a word.
# timeout: 300
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_daemon
convect pool create tank fast 'ram:fast?size=256M' slow 'ram:slow?size=512M' --accept-unmirrored >/dev/null
convect volume create tank/disk --size 32M >/dev/null
convect export create guest tank/disk vhost-user-blk --path "$work/guest.sock" >/dev/null
convect export create disk tank/disk nbd --listen "unix:$work/nbd.sock" >/dev/null
mkdir files
fuse=true
convect export create disk.img tank/disk fuse --mount "$work/files" >/dev/null || fuse=false

guest="vhost-user-blk:$work/guest.sock"
nbd="nbd+unix:///disk?socket=$work/nbd.sock"
# A second in which a busy machine has no time for anybody is followed by longer ones. Nothing is measured, so nothing has
# to get warm before: only the load below that somebody else writes into is given its second for that.
verified() {
  local seconds
  say "$*"
  for seconds in 1 4 16 64; do
    lab load "$@" --verify --overwrite --reads 50 --warm-up 0 --seconds "$seconds" --json --server-pid "$daemon_pid" >load.json
    if [ "$(field 'd["reads"]["iops"] > 0 and d["writes"]["iops"] > 0 and d["server_cores"] > 0' <load.json)" = True ]; then
      return 0
    fi
  done
  fail "$(cat load.json)"
}

verified "$guest" --blocks 4k:60,64k:40 --queues 4 --depth 16
verified "$guest" --polling --pattern hot:1:90 --depth 64
verified "$guest" --blocks 512:1,4k:1 --pattern zipf:0.99 --queues 2 --threads 2
verified "$guest" --blocks 1M --rate 200 --arrivals poisson
verified "$nbd" --blocks 4k:60,256k:40 --queues 2
verified "$nbd" --polling --pattern sequential
if [ "$fuse" = true ]; then
  verified "file:$work/files/disk.img" --blocks 4k:60,64k:40
  verified "file:$work/files/disk.img" --polling --queues 2
else
  say "left out: this machine has no FUSE"
fi

refused() {
  local word=$1
  shift
  if lab load "$@" >load.out 2>&1; then fail "this was not refused: $*"; fi
  grep -q -- "$word" load.out || fail "$* was refused without '$word': $(cat load.out)"
}
refused "--overwrite" "$guest" --reads 50
refused "multiple of 512" "$guest" --blocks 100
refused "zipf:EXPONENT" "$guest" --pattern zipf
refused "smaller --range" "$guest" --range 64M
refused "file:PATH" /dev/null
refused "cannot open" "vhost-user-blk:$work/none.sock"
refused "as many queues" "$guest" --threads 2

say "what somebody else writes meanwhile is noticed"
lab load "$nbd" --verify --overwrite --reads 100 --seconds 20 >load.out 2>&1 &
load=$!
# What is written while that one still fills the disk is written over: so once more, until it ends.
while kill -0 "$load" 2>/dev/null; do
  lab load "$guest" --reads 0 --overwrite --seconds 1 --warm-up 0 >/dev/null
done
if wait "$load"; then fail "wrong data passed for right"; fi
grep -q 'what is read at byte' load.out || fail "$(cat load.out)"

say "what can be compared without others is compared"
lab compare --only limit,null,mirror --size 16M --rounds 1 --seconds 1 --again 0 --json compare.json >compare.out
grep -q 'a core copies and checksums' compare.out || fail "$(cat compare.out)"
[ "$(field 'len(d["limit"]) == 1 and len(d["rows"]) == 6 and not d["missing"]' <compare.json)" = True ] ||
  fail "$(cat compare.json)"

say "and with --alone nobody else is asked"
lab compare --only nbd --alone --size 16M --rounds 1 --seconds 1 --again 0 --json alone.json >alone.out
[ "$(field '[[name for name, _ in row["systems"]] for row in d["rows"]]' <alone.json)" = "[['ConvectNbd'], ['ConvectNbd'], ['ConvectNbd']]" ] ||
  fail "$(cat alone.json)"
