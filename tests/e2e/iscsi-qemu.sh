#!/usr/bin/env bash
# QEMU's own iSCSI initiator: a guest boots from a unit, by the BIOS, and again after a restart of the daemon; and
# iscsi-perf runs.
# timeout: 300
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

guest() { bash "$root/tests/guest/run.sh" "$@"; }
port="$(free_port)"
url="iscsi://127.0.0.1:$port/iqn.2026-11.io.convect:boot/0"

start_daemon
create_pool pool 768M 2G
convect volume create pool/boot --size 128M
convect export create boot pool/boot iscsi --portal "127.0.0.1:$port" >/dev/null

say "a guest boots from a unit"
guest first "$url" booted mark=first | tee first.log
grep -q "^GUEST-BOOTED from $((128 << 11)) sectors" first.log || fail "it was booted from another disk"
restart_daemon
say "and again, with what the first has written"
guest second "$url" booted mark=second was=first
qemu-img dd -f raw -O raw bs=1M skip=48 count=49 if="$url" of=mark.img
head -n 1 mark.img | grep -qax second || fail "what the guest made durable is not there"

say "iscsi-perf"
timeout -s INT 20 iscsi-perf -m 32 -b 8 -t 1 -r "$url" >perf.log 2>&1 </dev/null || { cat perf.log; fail "iscsi-perf"; }
tr '\r' '\n' <perf.log | tail -n 3
grep -q 'iops average' perf.log || fail "iscsi-perf told no figure"
stop_daemon
