#!/usr/bin/env bash
# Reservations, with real clients: another volume fills the pool, and what is reserved can be written to the
# last block all the same, before and after kill -9.
# timeout: 120
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

nbd() { nbd_of "kept other" "mib = 1 << 20
$1"; }
reserved() { convect --json pool status pool | field 'd["reserved"]'; }

mib=$((1 << 20))
start_daemon
create_pool pool 256M 256M
convect volume create pool/kept --size 4G --reservation 64M | tee made
grep -q 'reserved: *64 MiB (64 MiB unused)' made || fail "$(cat made)"
convect volume create pool/other --size 4G
export_nbd kept pool/kept
export_nbd other pool/other

say "another volume fills the pool"
nbd '
for at in range(4 * 256):
    if full(other, bytes([at % 251 + 1]) * mib, at * 4 * mib):
        break
else:
    raise SystemExit("it took everything")
# Small holes that were left.
for at in range(4 * 256):
    if full(other, b"o" * 4096, at * 4 * mib + 2 * mib):
        break
else:
    raise SystemExit("it took every block")
assert not full(kept, b"first" * 4096, 0)
'
[ "$(reserved)" = $((64 * mib - 20480)) ] || fail "$(reserved) bytes are reserved"
if convect volume create pool/third --size 1G --reservation 8M 2>refused; then fail "it is promised twice"; fi
grep -q '^error: 8 MiB more cannot be reserved: pool pool has .* neither used nor' refused || fail "$(cat refused)"
convect pool status pool

say "after kill -9 all that is reserved can be written, and nothing beyond it"
kill_daemon
start_daemon
nbd '
assert full(other, b"o" * mib, (1 << 32) - mib)
kept.trim(20480, 0)
for at in range(64):
    assert not full(kept, bytes([at + 1]) * mib, (at % 4 << 30) + at * mib), at
assert full(kept, b"k" * 4096, (1 << 32) - 4096)
for at in range(64):
    assert kept.pread(mib, (at % 4 << 30) + at * mib) == bytes([at + 1]) * mib, at
'
[ "$(reserved)" = 0 ] || fail "$(reserved) bytes are reserved"

say "what it discards stays its own, until less is reserved"
nbd '
kept.trim(8 * mib, 0)
assert full(other, b"o" * mib, (1 << 32) - mib)
'
convect volume set pool/kept --reservation 32M | tee set
grep -q 'reserved: *32 MiB (0 B unused)' set || fail "$(cat set)"
nbd '
assert not full(other, b"o" * mib, (1 << 32) - mib)
'
stop_daemon
