#!/usr/bin/env bash
# Drives that are put back to an earlier state, cut short or gone between two starts of the daemon: what it says and does, and what
# the tools say of the same drives.
# timeout: 300
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

write() { nbdsh -u "$(uri "$1")" -c "h.pwrite(b'$2' * (4 << 20), 0); h.flush()"; }
first() { nbdsh -u "$(uri "$1")" -c "print(h.pread(4096, 0)[:1].decode())"; }
has_alert() { convect --json alert list | grep -q "\"$1\""; }
absent() { convect --json pool list | field '" ".join(p["message"] for p in d["absent"] if p["name"] == "'"$1"'")'; }
is_state() { [ "$(convect --json pool status "$1" | field 'd["state"]')" = "$2" ]; }
status_of() { # COMMAND...
  local status=0
  "$@" >said 2>&1 || status=$?
  echo "$status"
}

start_daemon
convect pool create lone fast "file:$work/l-fast.img?size=128M" slow "file:$work/l-slow.img?size=128M" --accept-unmirrored
convect pool create pair fast mirror "file:$work/p-a.img?size=128M" "file:$work/p-b.img?size=128M"
for pool in lone pair; do
  convect volume create "$pool/$pool" --size 32M
  export_nbd "$pool" "$pool/$pool"
  write "$pool" a
done
convect pool cool lone

say "a lone drive that was put back: not opened by itself, named, accepted by a word, told of until it was scrubbed"
stop_daemon
cp --sparse=always l-slow.img old-slow.img
start_daemon
write lone b
convect pool cool lone
kill_daemon
cp --sparse=always l-slow.img new-slow.img
cp --sparse=always old-slow.img l-slow.img
start_daemon
absent lone | grep -q "l-slow.img has label .*--accept-old" || fail "it says: $(absent lone)"
has_alert pool_absent || wait_until 20 has_alert pool_absent
convect pool status pair >/dev/null
stop_daemon
[ "$(status_of convect check "$work/l-fast.img" "$work/l-slow.img")" = 2 ] || fail "check: $(cat said)"
grep -q "l-slow.img was restored to an earlier state" said || fail "check: $(cat said)"
cksum <l-slow.img >before
[ "$(status_of convect repair --data --yes "$work/l-fast.img" "$work/l-slow.img")" = 2 ] || fail "repair: $(cat said)"
cksum <l-slow.img | cmp - before || fail "repair wrote to a drive that was put back"
[ "$(status_of convect restore lone --to out.img --drive "$work/l-fast.img" "$work/l-slow.img")" = 2 ] || fail "restore: $(cat said)"
start_daemon
# The name after the drives is understood as well.
status_of convect pool import --drive "file:$work/l-fast.img" "file:$work/l-slow.img" lone >status
[ "$(cat status)" != 0 ] || fail "it is imported"
grep -q -- "--accept-old" said || fail "import: $(cat said)"
convect pool import lone --drive "file:$work/l-fast.img" "file:$work/l-slow.img" --accept-old >/dev/null
wait_until 20 has_alert drive_old
stop_daemon
start_daemon
wait_until 20 has_alert drive_old
convect pool scrub lone --wait >/dev/null || true
no_alert() { ! has_alert drive_old; }
wait_until 20 no_alert

say "a member of a mirror whose file is gone: the pool is there after a start, degraded, with an alert"
stop_daemon
mv p-b.img away.img
start_daemon
is_state pair degraded || fail "$(convect pool list; absent pair)"
[ "$(first pair)" = a ] || fail "it reads $(first pair)"
wait_until 20 has_alert leg_out
write pair c
stop_daemon

say "the other one alone does not know what this one did: it is not opened by itself"
mv p-a.img a-away.img
mv away.img p-b.img
start_daemon
absent pair | grep -q "this host has seen" || fail "it says: $(absent pair)"
absent pair | grep -q "?size=" && fail "it proposes to make a file: $(absent pair)"
stop_daemon
mv a-away.img p-a.img
start_daemon
[ "$(first pair)" = c ] || fail "it reads $(first pair)"
whole() { is_state pair online; }
wait_until 60 whole

say "a member that was cut short"
stop_daemon
truncate -s 60M p-a.img
cksum <p-a.img >before
start_daemon
is_state pair degraded || fail "$(convect pool list; absent pair)"
[ "$(first pair)" = c ] || fail "it reads $(first pair)"
stop_daemon
cksum <p-a.img | cmp - before || fail "something was written to a drive that was cut short"
[ "$(status_of convect check "$work/p-a.img" "$work/p-b.img")" = 1 ] || fail "check: $(cat said)"
grep -q "bytes shorter than when it joined" said || fail "check: $(cat said)"
start_daemon

say "a drive without a mirror that was cut short"
stop_daemon
truncate -s 100M l-slow.img
start_daemon
absent lone | grep -q "l-slow.img is 29360128 bytes shorter than when it joined" || fail "it says: $(absent lone)"
stop_daemon
