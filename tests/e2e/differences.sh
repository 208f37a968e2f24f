#!/usr/bin/env bash
# What changed between snapshots, as the program and NBD's block status tell it: nothing that differs is
# missing, what nobody touched is not told, and a backup that takes only that is the same.
# timeout: 180
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

write() { # EXPORT SEED
  nbdsh -u "$(uri "$1")" -c "
import random
random.seed($2)
for _ in range(200):
    at = random.choice((0, 40, 250, 300, 390)) * (1 << 20) + random.randrange(4 << 20) // 4096 * 4096
    h.pwrite(random.randbytes(4096) * random.randint(1, 8), at)
h.trim(1 << 20, (2 << 20) + 4096 * $2)
h.zero(4096, 301 << 20)
h.flush()
"
}

# The ranges that the program tells, one a line: offset, length, type as nbdinfo has them.
told() { # FROM TO
  convect --json snapshot diff "$1" "$2" | python3 -c '
import json, sys
runs = []
for line in sys.stdin:
    for run in json.loads(line)["ranges"]:
        if runs and sum(runs[-1]) == run["offset"]:
            runs[-1][1] += run["len"]
        else:
            runs.append([run["offset"], run["len"]])
for offset, length in runs:
    print(offset, length)'
}

# The same, from the block status of an export.
mapped() { # EXPORT CONTEXT
  nbdinfo --json "--map=$2" "$(uri "$1")" |
    field '"\n".join("%d %d" % (run["offset"], run["length"]) for run in d if run["type"] == 1)'
}

start_daemon
create_pool pool 512M 1G --shards 2
convect volume create pool/disk --size 400M
export_nbd disk pool/disk
write disk 1
convect snapshot create pool/disk@a
write disk 2
convect snapshot create pool/disk@middle
write disk 3
convect snapshot create pool/disk@b
write disk 4
for name in a b; do
  export_nbd "$name" "pool/disk@$name"
  nbdcopy --no-extents "$(uri "$name")" "$name.img"
done

say "every block that differs is told, and little else"
told pool/disk@a pool/disk@b >ranges
python3 - a.img b.img ranges <<'PYTHON'
import sys
before, after = (open(name, "rb").read() for name in sys.argv[1:3])
told = set()
for line in open(sys.argv[3]):
    offset, length = map(int, line.split())
    assert offset % 4096 == 0 and length % 4096 == 0, line
    told.update(range(offset, offset + length, 4096))
differ = {at for at in range(0, len(after), 4096) if before[at:at + 4096] != after[at:at + 4096]}
assert differ, "nothing was changed"
assert differ <= told, f"not told: {sorted(differ - told)[:9]}"
# Random content is never written twice.
assert differ == told, f"told and the same: {sorted(told - differ)[:9]}"
PYTHON
convect snapshot diff pool/disk@a pool/disk@b | tail -n 1 | grep -q "changed in .* ranges of 400 MiB"
[ -z "$(told pool/disk@b pool/disk@b)" ] || fail "a snapshot differs from itself"

say "a copy of what changed makes the old image the new one"
cp a.img copy.img
while read -r offset length; do
  dd if=b.img of=copy.img bs=4096 skip=$((offset / 4096)) seek=$((offset / 4096)) \
    count=$((length / 4096)) conv=notrunc status=none
done <ranges
cmp copy.img b.img || fail "the copy is not as the snapshot"

say "NBD's block status tells the same"
mapped b convect:changed:a | diff - ranges || fail "nbdinfo is told something else"
told pool/disk@middle pool/disk >ranges-now
mapped disk convect:changed:middle | diff - ranges-now || fail "nbdinfo is told something else of the volume"
nbdinfo "$(uri b)" | grep -q 'convect:changed:a' || fail "the context is not listed"
qemu-img map --output=json --image-opts \
  "driver=nbd,server.type=unix,server.path=$work/b.sock,x-dirty-bitmap=convect:changed:a" |
  field '"\n".join("%d %d" % (run["start"], run["length"]) for run in d if not run["data"])' |
  diff - ranges || fail "qemu-img is told something else"

say "clones are compared with what they stand on, and nothing else is"
convect snapshot clone pool/disk@b twin
export_nbd twin pool/twin
write twin 5
told pool/disk@a pool/twin >ranges-twin
mapped twin convect:changed:disk@a | diff - ranges-twin || fail "nbdinfo is told something else of the clone"
for pair in "pool/disk@b pool/disk@a" "pool/disk@none pool/disk" "pool/disk pool/disk@a" \
  "pool/disk@a other/disk"; do
  # shellcheck disable=SC2086
  if convect snapshot diff $pair >/dev/null 2>refusal; then fail "this was not refused: $pair"; fi
  [ "$(wc -l <refusal)" = 1 ] || fail "$pair said: $(cat refusal)"
done

say "what is deleted in between changes nothing; what is compared with has to be there"
convect snapshot delete pool/disk@middle --yes
told pool/disk@a pool/disk@b | diff - ranges || fail "a snapshot in between matters"
kill_daemon
start_daemon
told pool/disk@a pool/disk@b | diff - ranges || fail "a kill matters"
mapped b convect:changed:a | diff - ranges || fail "a kill matters for NBD"
if nbdinfo "--map=convect:changed:middle" "$(uri disk)" >/dev/null 2>&1; then
  fail "a deleted snapshot can be compared with"
fi
nbdsh -c "
h.add_meta_context('convect:changed:a')
h.connect_uri('$(uri disk)')
told = []
h.block_status(1 << 20, 0, lambda context, offset, entries, error: told.append(context))
assert told == ['convect:changed:a'], told
import subprocess
convect = ['$CONVECT_BIN/convect']
subprocess.run(convect + ['export', 'delete', 'a', '--yes'], check=True)
subprocess.run(convect + ['snapshot', 'delete', 'pool/disk@a', '--yes'], check=True)
import time
# Until what stands on it begins to be merged into it, the snapshot can still be compared with.
for _ in range(3000):
    try:
        h.block_status(1 << 20, 0, lambda *_: 0)
    except nbd.Error as error:
        assert error.errno == 'EINVAL', error
        break
    time.sleep(0.1)
else:
    raise SystemExit('what stood on a deleted snapshot is still compared with it')
assert h.pread(512, 0)
"
stop_daemon
