#!/usr/bin/env bash
# Nothing that hosts use is cut off by accident, and exports are disabled and enabled, with NBD clients.
# timeout: 60
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

refused() { # WORDS COMMAND...
  local words=$1 code=0
  shift
  "$@" 2>refusal || code=$?
  [ "$code" = 5 ] || fail "$* ended with $code: $(cat refusal)"
  grep -q -- "$words" refusal || fail "$* said: $(cat refusal)"
}
shown() { convect --json export show "$1" | field "d['$2']"; }
is_connected() { [ "$(shown disk sessions)" = 1 ]; }
is_idle() { [ "$(shown disk sessions)" = 0 ]; }
reads() { # WORD
  nbdsh -u "$(uri disk)" -c "assert h.pread(4096, 0).rstrip(b'\\0') == b'$1', h.pread(16, 0)"
}
writes() { # WORD
  nbdsh -u "$(uri disk)" -c "h.pwrite(b'$1'.ljust(4096, b'\\0'), 0); h.flush()"
}

start_daemon
create_pool pool 256M 512M
convect volume create pool/disk --size 64M
export_nbd disk pool/disk
writes first
convect snapshot create pool/disk@monday
writes later

say "a connected host keeps its volume unless it is forced"
nbdsh -u "$(uri disk)" -c 'import time; time.sleep(300)' 2>/dev/null &
client=$!
defer 'kill $client 2>/dev/null'
wait_until 20 is_connected
host="a program on this server by export disk (nbd)"
refused "$host" convect pool export pool
refused "$host" convect pool destroy pool --yes
refused "$host" convect volume delete pool/disk --yes
refused "$host" convect volume resize pool/disk 32M --shrink --yes
refused "$host" convect snapshot rollback pool/disk@monday --yes
refused "$host" convect export disable disk
refused "--force" convect pool export pool
reads later

say "a disabled export serves nobody, and keeps its parameters over a restart"
convect export disable disk --force
kill "$client"
wait "$client" 2>/dev/null || true
[ ! -e "$work/disk.sock" ] || fail "its socket is still there"
[ "$(shown disk state)" = disabled ] || fail "$(convect export show disk)"
restart_daemon
[ "$(shown disk state)" = disabled ] || fail "$(convect export show disk)"
[ ! -e "$work/disk.sock" ] || fail "the restart started it"

say "its volume is rolled back and shrinks, and it returns as it was"
convect snapshot rollback pool/disk@monday --yes
convect volume resize pool/disk 32M --shrink --yes
convect export enable disk
[ "$(shown disk parameters)" = "{'listen': 'unix:$work/disk.sock'}" ] || fail "$(shown disk parameters)"
reads first
wait_until 20 is_idle

say "a rollback that is forced disconnects the host, which may come again"
writes third
convect snapshot rollback pool/disk@monday --yes --force
reads first
wait_until 20 is_idle

say "the pool closes with an idle export"
convect pool export pool
