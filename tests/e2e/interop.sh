#!/usr/bin/env bash
# Other people's NBD clients: nbdinfo, nbdcopy both ways, qemu-img, qemu-io, qemu-nbd as a client,
# nbdsh; over a Unix socket and TCP; and the handshake's bad cases.
# timeout: 180
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_daemon
create_pool pool 768M 2G
convect volume create pool/disk --size 512M
convect volume create pool/native --size 64M --lba 4096
export_nbd disk pool/disk
export_nbd native pool/native
convect export create tcp pool/disk nbd --listen tcp:127.0.0.1:0
address="$(convect --json export show tcp | field 'd["address"]')"
tcp="nbd://${address#tcp:}/tcp"

say "nbdinfo"
for target in "$(uri disk)" "$tcp"; do
  nbdinfo --json "$target" >info.json
  field 'd["exports"][0]["export-size"]' <info.json | grep -qx $((512 << 20))
  for can in can_flush can_fua can_trim can_zero can_multi_conn can_df; do
    [ "$(field "d['exports'][0]['$can']" <info.json)" = True ] || fail "$target: no $can"
  done
done
nbdinfo --list "$(uri disk)" | grep -q 'export="disk"'
field 'd["exports"][0]["block_size_minimum"]' < <(nbdinfo --json "$(uri native)") | grep -qx 4096

say "nbdcopy in, out, and the map"
head -c 48M /dev/urandom >data.img
truncate -s 512M data.img
head -c 1M /dev/urandom | dd of=data.img bs=1M seek=400 conv=notrunc status=none
nbdcopy --flush data.img "$(uri disk)"
nbdcopy "$(uri disk)" back.img
cmp data.img back.img
nbdcopy "$tcp" back-tcp.img
cmp data.img back-tcp.img
nbdinfo --map --json "$(uri disk)" >map.json
[ "$(field 'sum(e["length"] for e in d)' <map.json)" = $((512 << 20)) ]
allocated="$(field 'sum(e["length"] for e in d if e["type"] == 0)' <map.json)"
[ "$allocated" -ge $((49 << 20)) ] && [ "$allocated" -lt $((64 << 20)) ] ||
  fail "of 49 MiB written, $allocated bytes are reported as allocated"

say "qemu-img convert both ways and compare"
qemu-img compare -f raw -F raw data.img "$(uri disk)"
qemu-img convert -f raw -O qcow2 "$(uri disk)" out.qcow2
qemu-img compare -f raw -F qcow2 data.img out.qcow2
qemu-img convert -n -f qcow2 -O raw out.qcow2 "$(uri disk)"
qemu-img compare -f raw -F raw data.img "$(uri disk)"

say "qemu-io"
qemu-io -f raw -c "write -P 0x5a 1M 64k" -c flush -c "read -P 0x5a 1M 64k" \
  -c "write -f -P 0x6b 2M 4k" -c "write -z 1M 64k" -c "read -P 0 1M 64k" \
  -c "discard 2M 1M" -c "read -P 0 2M 1M" "$(uri disk)" | tee qemu-io.log
if grep -qi 'error\|failed' qemu-io.log; then fail "qemu-io met an error"; fi

say "qemu-nbd as a client"
qemu-nbd --persistent --fork --pid-file=qemu-nbd.pid -f raw -k "$work/through.sock" "$(uri disk)"
defer 'kill "$(cat qemu-nbd.pid)" 2>/dev/null'
nbdcopy "nbd+unix:///?socket=$work/through.sock" through.img
nbdcopy "$(uri disk)" direct.img
cmp through.img direct.img
nbdcopy --flush data.img "nbd+unix:///?socket=$work/through.sock"
nbdcopy "$(uri disk)" back.img
cmp data.img back.img
kill "$(cat qemu-nbd.pid)"

say "several connections see each other's writes after a flush of one"
nbdsh -c "
import nbd
a, b = nbd.NBD(), nbd.NBD()
for h in (a, b):
    h.connect_uri('$(uri disk)')
assert a.can_multi_conn()
for i in range(64):
    a.pwrite(bytes([i]) * 4096, i * 8192)
    assert b.pread(4096, i * 8192) == bytes([i]) * 4096
b.flush()
# Sectors within a block: read, changed and written.
a.pwrite(b'w' * 16384, 1 << 24)
a.pwrite(b'x' * 1536, (1 << 24) + 3584)
assert b.pread(16384, 1 << 24) == b'w' * 3584 + b'x' * 1536 + b'w' * 11264
"

say "trims, zeroes and their status"
nbdsh -c "
import nbd
h.add_meta_context('base:allocation')
h.connect_uri('$(uri disk)')
h.pwrite(b'y' * (4 << 20), 64 << 20)
h.trim(1 << 20, 65 << 20)
h.zero(1 << 20, 66 << 20, nbd.CMD_FLAG_NO_HOLE)
seen = []
def extent(context, offset, entries, error):
    at = offset
    for length, flags in zip(entries[::2], entries[1::2]):
        seen.append((at >> 20, length, flags)); at += length
h.block_status(4 << 20, 64 << 20, extent)
flags = {start: flags for start, _, flags in seen}
assert flags[64] == 0, seen
assert flags[65] & nbd.STATE_HOLE and flags[65] & nbd.STATE_ZERO, seen
assert h.pread(2 << 20, 65 << 20) == bytes(2 << 20)
assert h.pread(1 << 20, 67 << 20) == b'y' * (1 << 20)
"

say "the handshake's and the transmission's bad cases"
python3 "$root/tests/e2e/nbd_bad_cases.py" "$work/disk.sock" disk

say "it still serves"
nbdcopy --flush data.img "$(uri disk)"
nbdcopy "$(uri disk)" back.img
cmp data.img back.img
stop_daemon
