#!/usr/bin/env bash
# Volumes as files, as programs see them that count blocks: du, cp --sparse, df; owner and mode outlive the daemon;
# zeroes that keep their space, and holes punched in parts.
# timeout: 120
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_daemon
create_pool pool 256M 1G
convect volume create pool/disk --size 4G
mkdir files
convect export create disk pool/disk fuse --mount "$work/files" --mode 0640 --owner 1 --group 2
file="$work/files/disk"
access() { stat -c '%u %g %a' "$file"; }
taken() { du --block-size=1M "$file" | cut -f1; }

say "du, df and cp tell what is stored"
head -c 16M /dev/urandom | dd of="$file" bs=1M seek=100 conv=notrunc status=none
is_taken() { [ "$(taken)" = "$1" ]; }
wait_until 30 is_taken 16
cp --sparse=always "$file" copy.img
[ "$(du --block-size=1M copy.img | cut -f1)" -le 20 ] || fail "the copy is not sparse: $(du copy.img)"
cmp -n $((128 << 20)) "$file" copy.img
read -r size free < <(df --block-size=1M --output=size,avail "$file" | tail -n 1)
# df rounds up.
capacity=$(($(convect --json pool show pool | field 'next(f["capacity"] for f in d["fills"] if f["part"] == "space")') >> 20))
{ [ $((size - capacity)) -le 1 ] && [ "$free" -lt "$size" ] && [ "$free" -gt $((size - 128)) ]; } ||
  fail "the pool has $capacity MiB; of $size MiB $free are free"

say "owner and mode are the export's"
[ "$(access)" = "1 2 640" ] || fail "$(access)"
for change in "chmod 666" "chown 5" "chgrp 5"; do
  if $change "$file" 2>told; then fail "$change is taken, and would be forgotten"; fi
  grep -q 'not permitted' told || fail "$(cat told)"
done
convect export set disk --mode 0660 --group 7
[ "$(access)" = "1 7 660" ] || fail "$(access)"
restart_daemon
[ "$(access)" = "1 7 660" ] || fail "after a restart: $(access)"

say "a hole that is punched takes no space, and what was punched in parts takes none any more"
fallocate --punch-hole --offset $((1 << 30)) --length 100 "$file"
for part in $(seq 0 15); do
  fallocate --punch-hole --offset $(((100 << 20) + part * (1 << 20) + 1)) --length $(((1 << 20) - 1)) "$file"
  fallocate --punch-hole --offset $(((100 << 20) + part * (1 << 20))) --length 1 "$file"
done
wait_until 30 is_taken 1
