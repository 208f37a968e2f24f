#!/usr/bin/env bash
# A backup that reads a volume through an export of its own name leaves no trace of it in RAM or on the fast
# tier, while the same reads of somebody else do; over restarts, and changed while both are connected.
# timeout: 180
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_daemon
convect pool create pool fast "file:$work/fast.img?size=256M" \
  slow "model:hdd-7200:file:$work/slow.img?size=256M" --accept-unmirrored
convect volume create pool/vm --size 64M
convect export create guest pool/vm nbd --listen "unix:$work/guest.sock"
convect export create copy pool/vm nbd --listen "unix:$work/copy.sock" --initiator backup | tee made
grep -q '^initiator: *backup$' made || fail "$(cat made)"

# Bytes of the volume in RAM and on the fast tier.
warm() { convect --json map pool/vm | field 'tuple(sum(c[of] for c in d["cells"]) for of in ("ram", "fast"))'; }
counter() { curl -sf --unix-socket "$CONVECT_SOCKET" "http://x/v1/volumes/pool/vm/counters" | field "d['$1']"; }
# What somebody read before may still be on its way up.
is_cool() {
  convect pool cool pool
  local look
  for look in 1 2 3; do
    sleep 0.2
    [ "$(warm)" = "(0, 0)" ] || return 1
  done
}
cool() { wait_until 30 is_cool; }
# Reads the whole volume through an export, 64 KiB at a time.
scan() {
  nbd_of "$1" "
for at in range(0, 32 << 20, 64 << 10):
    assert $1.pread(64 << 10, at) == (at >> 16).to_bytes(8, 'big') * 8192, at
"
}

nbd_of guest "
for at in range(0, 32 << 20, 64 << 10):
    guest.pwrite((at >> 16).to_bytes(8, 'big') * 8192, at)
guest.flush()
"
cool

say "a backup that is bypassed leaves no trace, and is counted"
convect volume set pool/vm --bypass backup,iqn.2026-01.com.example:veeam
scan copy
[ "$(warm)" = "(0, 0)" ] || fail "it left $(warm)"
reads="$(counter bypassed_reads)"
[ "$reads" -ge 512 ] || fail "$reads reads were bypassed"
[ "$(counter bypassed_blocks)" = 8192 ] || fail "$(counter bypassed_blocks) blocks were bypassed"
convect volume show pool/vm | tee shown
grep -q "^bypassed: *backup, iqn.2026-01.com.example:veeam ($reads reads and 0 writes so far, of 8192 blocks)" shown ||
  fail "$(cat shown)"

say "the same reads of somebody else bring it up"
scan guest
[ "$(warm)" != "(0, 0)" ] || fail "it left nothing"
[ "$(counter bypassed_reads)" = "$reads" ] || fail "somebody else's reads were bypassed"

say "a change reaches who is connected"
cool
nbd_of copy "
import subprocess
def convect(*words):
    subprocess.run(['$CONVECT_BIN/convect', 'volume', 'set', 'pool/vm', '--bypass', *words], check=True)
assert copy.pread(4096, 0)
convect('none')
copy.pread(1 << 20, 1 << 20)
convect('backup')
copy.pread(1 << 20, 8 << 20)
"
[ "$(warm)" != "(0, 0)" ] || fail "it left nothing while nobody was bypassed"
[ "$(counter bypassed_blocks)" = $((8192 + 1 + 256)) ] || fail "$(counter bypassed_blocks) blocks were bypassed"

say "what it writes is as safe as any write, also over kill -9, and who it is is kept"
nbd_of copy "copy.pwrite(b'kept' * 1024, 40 << 20)"
kill_daemon
start_daemon
nbd_of guest "assert guest.pread(4096, 40 << 20) == b'kept' * 1024"
convect export show copy | grep -q '^initiator: *backup$' || fail "$(convect export show copy)"
convect export list | grep -q 'copy .*nbd .*backup .*online' || fail "$(convect export list)"
cool
scan copy
[ "$(warm)" = "(0, 0)" ] || fail "it left $(warm)"

say "a backup of a snapshot goes by its volume"
convect snapshot create pool/vm@now
convect export create old pool/vm@now nbd --listen "unix:$work/old.sock" --initiator=backup
scan old
[ "$(warm)" = "(0, 0)" ] || fail "it left $(warm)"
[ "$(counter bypassed_blocks)" = 16384 ] || fail "$(counter bypassed_blocks) blocks were bypassed"

say "what is no name is refused with what to write instead"
refused() { # WHY COMMAND...
  local why=$1
  shift
  if convect "$@" 2>refused; then fail "this was taken: $*"; fi
  grep -q "$why" refused || fail "$(cat refused)"
}
refused 'none excludes other names' volume set pool/vm --bypass backup,none
refused 'at most 8; remove some' volume set pool/vm --bypass a,b,c,d,e,f,g,h,i
long="$(printf 'x%.0s' {1..224})"
refused 'it has 224 bytes: use 1 to 223' volume set pool/vm --bypass "$long"
refused 'it has 224 bytes: use 1 to 223' export create bad pool/vm nbd --listen "unix:$work/bad.sock" --initiator "$long"
refused 'it is empty: use 1 to 223' export create bad pool/vm nbd --listen "unix:$work/bad.sock" --initiator ''
stop_daemon
