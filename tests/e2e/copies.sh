#!/usr/bin/env bash
# A copy of a pool's drives becomes a pool of its own beside the original, also one whose daemon was killed, and
# under a path that looks like a specification with a size.
# timeout: 120
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

content() { nbdcopy --no-extents "$(uri "$1")" - | sha256; }
id_of() { convect --json pool status "$1" | field 'd["id"]'; }

start_daemon
convect pool create tank fast "file:$work/fast?size=192M" slow "file:$work/slow?size=192M" --accept-unmirrored
convect volume create tank/v --size 32M
export_nbd v tank/v
nbdsh -u "$(uri v)" -c "
h.pwrite(b'before' * 4096, 0)
h.flush()
"
convect snapshot create tank/v@a
nbdsh -u "$(uri v)" -c "
h.pwrite(b'after' * 4096, 1 << 20)
h.flush()
"
before="$(content v)"
kill_daemon
mkdir copy
for drive in fast slow; do cp --sparse=always "$drive" "copy/$drive?size=1M"; done

say "a copy gets identities of its own, and a name"
copies=("file:$work/copy/fast?size=1M?" "file:$work/copy/slow?size=1M?")
if convect reidentify "${copies[0]}" --yes 2>said; then fail "half of a copy was taken"; fi
grep -q "specify all drives" said || fail "not said: $(cat said)"
convect reidentify "${copies[@]}" --name lab --yes
convect check --data "${copies[@]}"

say "both are in one host, and hold the same"
start_daemon
convect pool import lab --drive "${copies[@]}"
export_nbd w lab/v
[ "$(content w)" = "$before" ] || fail "the copy holds something else"
[ "$(content v)" = "$before" ] || fail "the original holds something else"
[ "$(id_of tank)" != "$(id_of lab)" ] || fail "both pools have one id"
nbdsh -u "$(uri w)" -c "h.pwrite(b'x' * 4096, 2 << 20); h.flush()"
[ "$(content v)" = "$before" ] || fail "a write to the copy is in the original"
convect snapshot list lab/v | grep -q a || fail "the copy's snapshot is gone"
stop_daemon
