#!/usr/bin/env bash
# Snapshots and clones with real programs: what nbdcopy reads of them, file systems that were being
# written when the snapshot was taken, the tools and a second reader of the format; promoting a clone;
# and that all space comes back.
# timeout: 300
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

digest() { nbdcopy --no-extents "$(uri "$1")" - | sha256; }

write() { # EXPORT SEED
  nbdsh -u "$(uri "$1")" -c "
import random
random.seed($2)
for _ in range(400):
    at = random.choice((0, 18, 36, 55)) * (1 << 20) + random.randrange(4 << 20) // 4096 * 4096
    h.pwrite(random.randbytes(4096) * random.randint(1, 8), at)
h.pwrite(b'sector..' * 64, random.randrange(1000) * 512)
h.trim(64 << 10, (2 << 20) + (64 << 10) * random.randrange(8))
h.zero(4096, 56 << 20)
h.flush()
"
}

# What the host reads has to be what the document's own reader finds in the images.
agree() { # NAME EXPORT
  local found
  found="$(field "next(v['sha256'] for v in d['volumes'] if v['name'] == '$1')" <read.json)"
  [ "$found" = "${digests[$2]}" ] || fail "$1: the images say something else than the host read"
}

nothing_runs() { [ "$(convect --json job list | field 'any(job["state"] == "running" for job in d["items"])')" = False ]; }

refused() { # WORDS COMMAND...
  local words=$1
  shift
  if "$@" 2>refusal; then fail "this was not refused: $*"; fi
  grep -q -- "$words" refusal || fail "$* said: $(cat refusal)"
}

declare -A digests
start_daemon
images=(pool-fast.img pool-slow1.img pool-slow2.img)
create_pool pool 512M 1G --shards 2
convect volume create pool/disk --size 64M
convect volume create pool/other --size 16M
export_nbd disk pool/disk
export_nbd other pool/other

say "a snapshot stays as it was, a clone goes its own way"
write disk 1
nbdsh -u "$(uri other)" -c 'h.pwrite(b"first..." * 512, 0); h.flush()'
before="$(digest disk)"
convect snapshot create pool/disk@monday pool/other@monday
write disk 2
nbdsh -u "$(uri other)" -c 'h.pwrite(b"second.." * 512, 0); h.flush()'
export_nbd monday pool/disk@monday
[ "$(digest monday)" = "$before" ] || fail "the snapshot changed"
nbdinfo --json "$(uri monday)" | field 'd["exports"][0]["is_read_only"]' | grep -qx True || fail "a snapshot can be written"
convect snapshot clone pool/disk@monday copy
export_nbd copy pool/copy
[ "$(digest copy)" = "$before" ] || fail "the clone is not as the snapshot"
now="$(digest disk)"
write copy 3
[ "$(digest disk)" = "$now" ] || fail "writing to the clone changed the volume"
[ "$(digest monday)" = "$before" ] || fail "writing to the clone changed the snapshot"

say "a snapshot is exported to be written, by way of a clone that the export makes"
refused "unknown protocol" convect export create scratch pool/disk@monday scsi --writable
refused "is not a snapshot" convect export create scratch pool/disk nbd --listen "unix:$work/scratch.sock" --writable
refused "scratch.sock" convect export create scratch pool/disk@monday nbd --listen "unix:$work/none/scratch.sock" --writable
no_scratch() { ! convect volume show pool/scratch; }
wait_until 30 no_scratch
convect export create scratch pool/disk@monday nbd --listen "unix:$work/scratch.sock" --writable
[ "$(digest scratch)" = "$before" ] || fail "what is written to begins as something else than the snapshot"
write scratch 4
[ "$(digest scratch)" != "$before" ] || fail "nothing was written"
[ "$(digest monday)" = "$before" ] || fail "writing beside the snapshot changed it"
convect export delete scratch --yes
convect volume delete pool/scratch --yes
wait_until 30 nothing_runs

say "what is refused says why"
refused "is exported as monday" convect snapshot delete pool/disk@monday --yes
refused "is exported as monday" convect snapshot rename pool/disk@monday tuesday
convect export delete monday --yes
refused "has clones: copy" convect snapshot delete pool/disk@monday --yes
export_nbd monday pool/disk@monday
refused "1 snapshots" bash -c "'$CONVECT_BIN/convect' export delete other --yes && '$CONVECT_BIN/convect' volume delete pool/other --yes </dev/null"
refused "already" convect snapshot create pool/disk@monday
refused "is not a snapshot" convect snapshot create pool/disk
convect snapshot hold pool/other@monday
refused "is held" convect snapshot delete pool/other@monday --yes
convect snapshot release pool/other@monday
export_nbd other pool/other

say "the same after kill -9, for the daemon, for the tools and for the document's reader"
convect snapshot create pool/disk@tuesday
write disk 4
export_nbd tuesday pool/disk@tuesday
for name in disk copy other monday tuesday; do digests[$name]="$(digest "$name")"; done
kill_daemon
python3 "$root/tests/format/read_pool.py" --json "${images[@]}" >read.json
agree disk disk
agree copy copy
agree other other
agree disk@monday monday
agree disk@tuesday tuesday
drives=()
for image in "${images[@]}"; do drives+=(--drive "file:$work/$image"); done
convect restore disk@tuesday --to tuesday.img "${drives[@]}"
[ "$(sha256 <tuesday.img)" = "${digests[tuesday]}" ] || fail "the tools restore something else"
convect check --data "${images[@]/#/file:$work/}"
start_daemon
for name in disk copy other monday tuesday; do
  [ "$(digest "$name")" = "${digests[$name]}" ] || fail "$name is something else after the kill"
done

say "rolling back"
for name in disk tuesday; do convect export delete "$name" --yes; done
convect snapshot rollback pool/disk@monday --yes
export_nbd disk pool/disk
[ "$(digest disk)" = "$before" ] || fail "it was not rolled back"
write disk 5
[ "$(digest monday)" = "$before" ] || fail "a write after rolling back changed the snapshot"

say "a clone is promoted, and what it was cloned from goes"
digests[copy]="$(digest copy)"
refused "is exported as monday" convect volume promote pool/copy
refused "is not a clone" convect volume promote pool/disk
convect export delete monday --yes
convect volume promote pool/copy | tee promoted
grep -q "now has the snapshots monday of pool/disk" promoted || fail "it does not say what it has"
refused "has clones: disk" convect snapshot delete pool/copy@monday --yes
convect export delete disk --yes
convect snapshot delete pool/disk@tuesday --yes
convect volume delete pool/disk --yes
wait_until 60 nothing_runs
[ "$(digest copy)" = "${digests[copy]}" ] || fail "the clone changed when it was promoted"
export_nbd monday pool/copy@monday
[ "$(digest monday)" = "$before" ] || fail "the snapshot changed when it became the clone's"
kill_daemon
python3 "$root/tests/format/read_pool.py" --json "${images[@]}" >read.json
agree copy copy
agree copy@monday monday
convect check --data "${images[@]/#/file:$work/}"
start_daemon
for name in copy monday; do
  [ "$(digest "$name")" = "${digests[$name]}" ] || fail "$name is something else after the kill"
done

say "everything is deleted, and all space comes back"
for name in copy other monday; do convect export delete "$name" --yes; done
convect snapshot delete pool/copy@monday pool/other@monday --yes
wait_until 60 nothing_runs
convect volume delete pool/copy --yes
convect volume delete pool/other --yes
wait_until 60 nothing_runs
nothing_used() { [ "$(convect --json pool status pool | field 'd["used"]')" = 0 ]; }
wait_until 20 nothing_used

mkdir files mnt
defer "umount '$work/mnt' 2>/dev/null"
for kind in ext4 xfs; do
  say "$kind, written while the snapshot is taken: its clone is whole"
  convect volume create "pool/$kind" --size 512M
  convect export create "$kind" "pool/$kind" fuse --mount "$work/files"
  attach_loop loop "files/$kind" --direct-io=on
  case "$kind" in ext4) mkfs.ext4 -q -F "$loop" ;; *) mkfs.xfs -q -f "$loop" ;; esac
  mount "$loop" mnt
  head -c 20M /dev/urandom >mnt/kept
  sync -f mnt
  # It ends by itself, so that nothing of it has a file open when the file system goes.
  rm -f enough
  (for number in $(seq 1 2000); do
    [ ! -e enough ] || exit 0
    head -c 50000 /dev/urandom >"mnt/file-$number" && sync "mnt/file-$number" || exit 0
  done 2>/dev/null) &
  writer=$!
  wait_until 30 test -e mnt/file-20
  convect snapshot create "pool/$kind@busy"
  : >enough
  wait "$writer" 2>/dev/null || true
  sha256sum mnt/kept >kept.hash
  umount mnt
  detach_loop "$loop"
  convect snapshot clone "pool/$kind@busy" "$kind-copy"
  convect export create "$kind-copy" "pool/$kind-copy" fuse --mount "$work/files"
  attach_loop loop "files/$kind-copy" --direct-io=on
  # Mounting plays the journal, as after a loss of power; then nothing may be wrong.
  mount -o nouuid "$loop" mnt 2>/dev/null || mount "$loop" mnt
  sha256sum --quiet -c kept.hash
  [ "$(find mnt -name 'file-*' | wc -l)" -gt 0 ] || fail "the snapshot was taken too early"
  umount mnt
  case "$kind" in ext4) e2fsck -fn "$loop" ;; *) xfs_repair -n "$loop" ;; esac
  detach_loop "$loop"
done
stop_daemon
