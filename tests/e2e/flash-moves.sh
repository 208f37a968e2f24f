#!/usr/bin/env bash
# A fast drive goes from one pool to another while both serve: emptied, taken out, added, used. Nothing that hosts
# wrote is lost or answered with an error, and what was written to the drive counts anew.
# timeout: 180
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_daemon
for pool in one two; do
  convect pool create "$pool" fast "file:$work/$pool-fast.img?size=256M" slow "file:$work/$pool-slow.img?size=512M" \
    --accept-unmirrored
  convect volume create "$pool/vm" --size 96M
  convect export create "$pool" "$pool/vm" nbd --listen "unix:$work/$pool.sock"
done
convect pool add one fast "file:$work/moves.img?size=256M"

vdrive_of() { # POOL: the vdrive that has the drive, or nothing
  convect --json pool show "$1" |
    field "' '.join(str(v['id']) for v in d['vdrives'] if any('moves.img' in x['spec'] for x in v['drives']))"
}
used() { convect --json pool show "$1" | field "sum(v['used'] for v in d['vdrives'] if v['id'] == $2)"; }

# Writes and reads both volumes without end, each block with its number and its turn; an error ends it at once.
nbd_of "one two" "
import os, random
chance, wrote, turns = random.Random(1), {}, 0
def block(of, at, turn):
    return (of * 1000003 + at * 1009 + turn).to_bytes(8, 'big') * 512
while not os.path.exists('enough'):
    turns += 1
    for of, disk in enumerate((one, two)):
        at = chance.randrange(16384)
        disk.pwrite(block(of, at, turns), at * 4096)
        wrote[of, at] = turns
        (of, at), turn = chance.choice(list(wrote.items())[-4096:])
        assert (one, two)[of].pread(4096, at * 4096) == block(of, at, turn), (of, at, turn)
    if turns == 2000:
        open('running', 'w')
for (of, at), turn in wrote.items():
    assert (one, two)[of].pread(4096, at * 4096) == block(of, at, turn), (of, at, turn)
print(turns, 'turns,', len(wrote), 'blocks')
" >load.out 2>&1 &
load=$!
is_running() { kill -0 "$load" || fail "the load ended: $(cat load.out)"; [ -e running ]; }
wait_until 60 is_running

say "the drive holds something, is emptied and leaves"
vdrive="$(vdrive_of one)"
[ -n "$vdrive" ] || fail "the first pool has no such drive"
has_some() { [ "$(used one "$vdrive")" -gt 0 ]; }
wait_until 60 has_some
convect pool remove one "$vdrive" --yes
[ -z "$(vdrive_of one)" ] || fail "the first pool still has it"

say "the other pool takes it, and puts data there"
convect pool add two fast "file:$work/moves.img"
vdrive="$(vdrive_of two)"
[ -n "$vdrive" ] || fail "the second pool has it not"
is_used() { [ "$(used two "$vdrive")" -gt 0 ]; }
wait_until 60 is_used

say "nothing was answered wrong meanwhile, nor is it after a kill"
: >enough
wait "$load" || fail "the load failed: $(cat load.out)"
cat load.out
written() {
  convect --json pool show two | field "[x['wear']['hosts'] for v in d['vdrives'] for x in v['drives'] if 'moves.img' in x['spec']][0]"
}
[ "$(written)" -gt 0 ] || fail "what was written to it is not counted"
for pool in one two; do nbd_of "$pool" "$pool.flush()"; done
sum() { nbd_of "$1" "import hashlib; print(hashlib.sha256(b''.join($1.pread(1 << 20, at << 20) for at in range(64))).hexdigest())"; }
before="$(sum one) $(sum two)"
kill_daemon
start_daemon
[ "$(sum one) $(sum two)" = "$before" ] || fail "a kill changed something"
stop_daemon
