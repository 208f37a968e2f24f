#!/usr/bin/env bash
# Space: a pool that warns as it fills, runs out, gets more, gives it back, moves off a vdrive, and moves to
# another daemon; volumes that grow and shrink.
# timeout: 300
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

used() { convect --json pool status pool | field 'd["used"]'; }

# Runs Python with a connected libnbd handle `h`; errors of the protocol are `nbd.Error`.
nbd() { nbdsh -u "$(uri disk)" -c "import nbd, errno" -c "$1"; }

start_daemon
create_pool pool 512M 512M
convect volume create pool/disk --size 8G
export_nbd disk pool/disk

convect pool warn pool --at 10,50
[ "$(convect --json pool status pool | field 'd["promised_percent"] > 500 and d["warn_at"]')" = "[10, 50]" ] \
  || fail "it does not say what it promised: $(convect pool status pool)"

say "writes end with 'no space', reads go on"
nbd '
block = b"\x5a" * (1 << 20)
written = 0
try:
    while written < 4096:
        h.pwrite(block[:-8] + written.to_bytes(8, "big"), written << 20)
        written += 1
    raise SystemExit("a pool of 1.5 GiB took 4 GiB")
except nbd.Error as error:
    assert error.errnum == errno.ENOSPC, error
assert written > 512, written
for mib in (0, 1, written // 2, written - 1):
    data = h.pread(1 << 20, mib << 20)
    assert data == block[:-8] + mib.to_bytes(8, "big"), mib
h.flush()
print("took", written, "MiB")
open("written", "w").write(str(written))
'
written="$(cat written)"

say "the log and the list say how full it is"
log_says() { grep -q "pool pool: its space is $1" daemon.log; }
level() { convect --json pool status pool | field '[f["level"] for f in d["fills"] if f["part"] == "space"][0]'; }
# How much of it data can have depends on how it lies.
wait_until 30 log_says '\([5-9][0-9]\|100\)\.. % full (.*): add a vdrive or delete data'
[ "$(level)" = 50 ] || fail "$(convect pool status pool)"
convect pool list | tee listed
grep -q 'note: pool pool: its space is .* % full' listed || fail "the list does not say so"

say "space is added, writes go on"
convect pool add pool slow "file:$work/more.img?size=1G"
nbd "
data = b'\xa5' * (1 << 20)
for mib in range(5000, 5064):
    h.pwrite(data, mib << 20)
h.flush()
assert h.pread(1 << 20, 5063 << 20) == data
"

say "discard gives space back"
before="$(used)"
nbd "
for mib in range(0, $written - 64, 16):
    h.trim(16 << 20, mib << 20)
for mib in range(5000, 5064, 16):
    h.zero(16 << 20, mib << 20)
h.flush()
assert h.pread(1 << 20, 0) == bytes(1 << 20)
assert h.pread(1 << 20, 5063 << 20) == bytes(1 << 20)
"
gave_back() { [ "$(used)" -lt $((before - 512 * 1024 * 1024)) ]; }
wait_until 30 gave_back
wait_until 30 log_says 'below 50 % again'

say "a vdrive is evacuated while its data stays"
nbd "
import content
for mib in range(6000, 6200):
    h.pwrite(content.mib(7, mib), mib << 20)
h.flush()
"
vdrive="$(convect --json vdrive list pool | field '[v["id"] for v in d["items"] if v["tier"] == "slow"][0]')"
convect pool remove pool "$vdrive" --yes
left="$(convect --json vdrive list pool | field '[v["id"] for v in d["items"]]')"
case "$left" in *"$vdrive"*) fail "vdrive $vdrive is still there: $left" ;; esac
check='
import content
for mib in range(6000, 6200):
    assert h.pread(1 << 20, mib << 20) == content.mib(7, mib), mib
'
nbd "$check"

say "volumes grow, and shrink only with a word"
convect volume resize pool/disk 9G
nbd 'assert h.get_size() == 9 << 30, h.get_size()'
if convect volume resize pool/disk 7G 2>refused; then fail "it shrank without a word"; fi
grep -q '^error: .*shrink' refused || fail "not said what to do: $(cat refused)"
convect volume resize pool/disk 7G --shrink --yes
nbd 'assert h.get_size() == 7 << 30, h.get_size()'
nbd "$check"

say "the pool moves to another daemon"
convect pool export pool
[ "$(convect --json pool list | field 'len(d["items"])')" = 0 ] || fail "the pool is still open"
stop_daemon
mkdir other
sed "s,$work/state,$work/other,;s,$CONVECT_SOCKET,$work/other.sock," convect.toml >other.toml
mv other.toml convect.toml
CONVECT_SOCKET="$work/other.sock"
start_daemon
drives=()
for image in pool-fast.img pool-slow1.img pool-slow2.img more.img; do
  drives+=("file:$work/$image")
done
convect pool import --drive "${drives[@]}" | grep -q pool
mkfifo fifo
ln -s more.img again.img
convect --json pool import -d . >found 2>noted
[ "$(field '" ".join(p["name"] for p in d["items"])' <found)" = pool ] || fail "the directory has the pool once: $(cat found)"
[ "$(field '(len(d["items"][0]["found"]), d["items"][0]["missing"])' <found)" = "(2, [])" ] || fail "not each drive once: $(cat found)"
rm again.img fifo
# The label of one drive leads to the others.
convect pool import pool --drive "${drives[0]}"
nbd "$check"

say "a volume is deleted and its space is free"
convect export delete disk --yes
convect volume delete pool/disk --yes
free() { [ "$(used)" -lt $((64 * 1024 * 1024)) ]; }
wait_until 30 free
convect pool destroy pool --yes
convect pool create again fast "file:$work/pool-fast.img"
stop_daemon
