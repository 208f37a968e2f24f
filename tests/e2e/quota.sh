#!/usr/bin/env bash
# Quotas, with real clients: a volume takes what it may and not a block more, what is there can be
# overwritten, discards and deleted snapshots make room, and all of it is so after kill -9.
# timeout: 120
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# Runs Python with `disk` and `other`; `count` says how many blocks of 4 KiB fit from some place on.
nbd() {
  nbd_of "disk other" "
def count(handle, at, most):
    for block in range(most):
        if full(handle, block.to_bytes(8, 'big') * 512, at + block * 4096):
            return block
    raise SystemExit('%d blocks were taken' % most)
$1"
}
held() { convect --json volume show pool/disk | field '(d["held"], d["quota"])'; }

mib=$((1 << 20))
start_daemon
create_pool pool 256M 256M
convect volume create pool/disk --size 4G --quota 16M | tee made
grep -q 'quota: *16 MiB (0.0 % used)' made || fail "$(cat made)"
convect volume create pool/other --size 4G
export_nbd disk pool/disk
export_nbd other pool/other

say "it takes 16 MiB, over both shards' regions, and the pool has room for others"
nbd '
taken = 0
for region in range(4):
    for block in range(1000):
        assert not full(disk, block.to_bytes(8, "big") * 512, (region << 28) + block * 4096)
        taken += 1
taken += count(disk, 1 << 30, 4096)
assert taken == 4096, taken
for region in range(4):
    assert full(disk, bytes([1]) * 4096, (region << 28) + (100 << 20)), region
    assert full(disk, bytes([1]) * 512, (region << 28) + (100 << 20)), region
assert not full(disk, b"again " * 1024 * 64, 1 << 28)
assert not full(other, b"other" * 4096, 0)
assert disk.pread(512, 1 << 28)[:6] == b"again "
'
[ "$(held)" = "($((16 * mib)), $((16 * mib)))" ] || fail "it holds $(held)"
[ "$(convect --json pool status pool | field 'd["state"]')" = online ] || fail "$(convect pool status pool)"

say "the same after kill -9; a discard makes room"
kill_daemon
start_daemon
[ "$(held)" = "($((16 * mib)), $((16 * mib)))" ] || fail "it holds $(held)"
nbd '
assert full(disk, b"x" * 4096, 200 << 20)
assert disk.pread(512, 1 << 28)[:6] == b"again "
disk.trim(2 << 20, 0)
assert count(disk, 3 << 30, 4096) == 512
'

say "what a snapshot has needs a new block, until it is deleted"
convect volume set pool/disk --quota 17M
convect snapshot create pool/disk@now
nbd '
assert count(disk, 3 << 30, 512) == 256
assert full(disk, b"y" * 4096, (3 << 30) + (1 << 20))
assert not full(disk, b"y" * 4096, 3 << 30)
'
if convect volume set pool/disk --quota 16M 2>refused; then fail "it holds more already"; fi
grep -q '^error: .*already use 17 MiB' refused || fail "$(cat refused)"
convect snapshot delete pool/disk@now --yes
gives_back() { [ "$(held)" = "($((16 * mib)), $((17 * mib)))" ]; }
wait_until 30 gives_back
kill_daemon
start_daemon
wait_until 30 gives_back
nbd '
assert count(disk, 2 << 30, 512) == 256
'

say "without a quota it takes what the pool has"
convect volume set pool/disk --quota none | tee set
if grep -q quota: set; then fail "$(cat set)"; fi
nbd '
assert not full(disk, b"z" * (1 << 20), 200 << 20)
'
convect volume set pool/disk --quota 20000001 | grep 'note: quota rounded up to a multiple of 4 KiB: 20000768 bytes'
stop_daemon
