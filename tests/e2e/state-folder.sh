#!/usr/bin/env bash
# A state folder that is full, without inodes, read-only or whose files were cut: pools and exports are served, what cannot
# be kept raises an alert, and changes are refused with the reason until there is space.
# timeout: 240
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

mkdir state
chmod 0750 state
mount -t tmpfs -o size=2m,nr_inodes=200,mode=0750 none state
defer "umount -l '$work/state' 2>/dev/null"

serves() {
  nbd_of disk "
disk.pwrite(b'a' * 4096, 4096)
disk.flush()
assert disk.pread(4096, 4096) == b'a' * 4096
"
}
has_alert() { convect alert list --json | grep -q "\"$1\""; }
no_alert() { ! has_alert "$1"; }
# The log's last page may have room for some entries.
refused_change() {
  local number
  for number in {1..60}; do
    if ! convect volume create "tank/more$number" --size 16M >/dev/null 2>refused; then
      grep -q 'audit log' refused || fail "$(cat refused)"
      return
    fi
    convect volume delete "tank/more$number" --yes >/dev/null 2>&1 || true
  done
  fail "changes are made without the log"
}
works_again() {
  wait_until 60 no_alert state_unwritten
  convect volume create tank/more --size 16M >/dev/null
  convect volume delete tank/more --yes >/dev/null
}

start_daemon
create_pool tank 256M 512M
convect volume create tank/v --size 64M >/dev/null
export_nbd disk tank/v

say "full"
dd if=/dev/zero of=state/ballast bs=1k 2>/dev/null || true
wait_until 60 has_alert state_unwritten
serves
refused_change
kill_daemon
start_daemon
serves
refused_change
has_alert state_unwritten || wait_until 30 has_alert state_unwritten
rm state/ballast
works_again

say "out of inodes"
mkdir state/many
for number in $(seq 200); do : >"state/many/$number" || break; done 2>/dev/null
wait_until 60 has_alert state_unwritten
kill_daemon
start_daemon
serves
rm -r state/many
works_again

say "read-only"
kill_daemon
mount -o remount,ro state
start_daemon
serves
refused_change
wait_until 30 has_alert state_unwritten
mount -o remount,rw state
works_again

say "files of length 0"
kill_daemon
find state -maxdepth 1 -type f -exec truncate -s 0 {} +
start_daemon
serves
wait_until 30 has_alert state_damaged
wait_until 30 has_alert audit_altered
rm state/*.damaged
wait_until 30 no_alert state_damaged
convect volume create tank/last --size 16M >/dev/null
stop_daemon

say "a folder in which others may put files is refused"
chmod 0777 state
if timeout 60 "$CONVECT_BIN/convect" serve --config convect.toml 2>refused; then fail "it is used"; fi
grep -q 'it is writable by every user' refused || fail "$(cat refused)"
