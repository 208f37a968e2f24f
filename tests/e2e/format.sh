#!/usr/bin/env bash
# docs/format.md is whole and true: a reader written from that page alone finds in the images of
# drives what a host read, in order and after kill -9; over every layout, both tiers and two shards.
# timeout: 300
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# Prints the SHA-256 of each volume, as the host reads it.
as_a_host() {
  local name
  for name in disk small; do
    echo "$(nbdcopy --no-extents "$(uri "$name")" - | sha256) $name"
  done
}

# Prints the same from the images.
as_the_document_says() {
  python3 "$root/tests/format/read_pool.py" --json "$@" >read.json
  field '"\n".join(v["sha256"] + " " + v["name"] for v in d["volumes"])' <read.json
}

same() { # WHAT IMAGE...
  local what=$1
  shift
  as_the_document_says "$@" >read
  diff host read || fail "$what: the images say something else than the host read"
}

write() { # SEED
  nbdsh -u "$(uri disk)" -c "
import random
random.seed($1)
for _ in range(300):
    at = random.choice((0, 250, 300)) * (1 << 20) + random.randrange(4 << 20) // 4096 * 4096
    h.pwrite(random.randbytes(4096) * random.randint(1, 8), at)
h.pwrite(b'sector..' * 64, 777 * 512)
h.trim(64 << 10, (2 << 20) + (64 << 10) * random.randrange(8))
h.zero(4096, 301 << 20)
h.flush()
"
}

# Most of what was written has sunk: it is at home now, and on the fast tier, too. Chunks that hold little stay.
has_sunk() {
  convect --json pool status pool >status.json
  [ "$(field 'd["fast_shadow"] > d["fast_dirty"]' <status.json)" = True ]
}

start_daemon
images=(fast1.img fast2.img slow1.img slow2.img slow3.img slow4.img)
convect pool create pool --shards 2 \
  fast mirror "file:$work/fast1.img?size=256M" "file:$work/fast2.img?size=256M" \
  slow stripe:16k "file:$work/slow1.img?size=128M" "file:$work/slow2.img?size=160M" \
  slow "file:$work/slow3.img?size=64M" "file:$work/slow4.img?size=64M"
convect volume create pool/disk --size 400M
convect volume create pool/small --size 3M --lba 4096
export_nbd disk pool/disk
export_nbd small pool/small

say "a pool that was exported, with data on both tiers"
write 1
nbdsh -u "$(uri small)" -c 'h.pwrite(bytes(range(256)) * 16, 4096); h.flush()'
wait_until 60 has_sunk
write 2
as_a_host >host
sort host | uniq | grep -c . | grep -qx 2 || fail "the volumes are the same"
convect pool export pool
same "exported" "${images[@]}"
[ "$(field 'd["exported"]' <read.json)" = True ] || fail "the label does not say that it was exported"
same "without a leg of the mirror" "${images[@]:1}"
same "without the other leg" fast1.img "${images[@]:2}"

say "a pool whose daemon was killed"
convect pool import pool --drive "${images[@]/#/file:$work/}"
# A checkpoint just before the kill leaves no journal: then another kill is to find one.
for seed in {3..12}; do
  write "$seed"
  as_a_host >host
  kill_daemon
  same "killed" "${images[@]}"
  [ "$(field 'd["records"]' <read.json)" = 0 ] || break
  start_daemon
done
[ "$(field 'd["records"]' <read.json)" -gt 0 ] || fail "there was no journal to apply"
say "$(field 'd["records"]' <read.json) records of the journal were applied"
start_daemon
as_a_host >again
diff host again || fail "the daemon itself reads something else after the kill"
stop_daemon

say "damage is said and not read over"
python3 - fast1.img fast2.img <<'PY'
import sys
for image in sys.argv[1:]:
    with open(image, "r+b") as file:
        for block in range(1, 5):  # both checkpoints of both shards
            file.seek((2 << 20) + block * 4096 + 100)
            file.write(b"\xff")
PY
if as_the_document_says "${images[@]}" 2>damage; then fail "damage was read over"; fi
grep -q '^error: shard 0 has no checkpoint' damage || fail "not said: $(cat damage)"
