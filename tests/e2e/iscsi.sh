#!/usr/bin/env bash
# Other people's iSCSI clients: the whole of libiscsi's suite over two portals, its iSCSI family with digests and CHAP both
# ways and on blocks of 4 KiB (the whole suite there, too, with CONVECT_LONG=1), and on what may only be read; then
# qemu-img in and out.
# timeout: 900
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

start_daemon
create_pool pool 2G 2G
convect volume create pool/plain --size 256M
convect volume create pool/proved --size 256M
convect volume create pool/native --size 256M --lba 4096
convect volume create pool/image --size 64M

cat >secrets <<'TXT'
name host
secret host-secret-0001
mutual-name target
mutual-secret target-secret-01
TXT
chmod 600 secrets

prefix=iqn.2026-11.io.convect
export_iscsi() { # NAME VOLUME PORTALS [ARG...]
  convect export create "$1" "pool/$2" iscsi --portal "$3" "${@:4}" >/dev/null
}
# The portals of an export, one a line.
portals() { convect --json export show "$1" | field 'd["address"].split("/")[0].removeprefix("iscsi:").replace(",", "\n")'; }

export_iscsi plain plain 127.0.0.1:0,127.0.0.1:0
export_iscsi proved proved 127.0.0.1:0 --chap "$work/secrets"
export_iscsi native native '[::1]:0'
mapfile -t plain < <(portals plain)
proved="$(portals proved)" native="$(portals native)"

say "discovery shows what is granted and nothing else"
iscsi-ls "iscsi://${plain[0]}" | grep -q "$prefix:plain"
if iscsi-ls "iscsi://$proved" 2>&1 | grep -q "$prefix:proved"; then fail "a target that asks for a secret is shown"; fi
iscsi-ls "iscsi://host%host-secret-0001@$proved" | grep -q "$prefix:proved"
for url in "iscsi://$proved/$prefix:proved/0" "iscsi://host%host-secret-0002@$proved/$prefix:proved/0" \
  "iscsi://other%host-secret-0001@$proved/$prefix:proved/0" "iscsi://${plain[0]}/$prefix:proved/0"; do
  if iscsi-inq "$url" >/dev/null 2>&1; then fail "$url was let in"; fi
done

say "the suite, three times at once"
suite() { # LOG FAMILY URL...
  iscsi-test-cu --dataloss --allow-sanitize --test="$2" "${@:3}" >"$1" 2>&1 </dev/null || true
}
# Where only the session or the size of blocks differs, ./dev campaign has the rest.
family=iSCSI native_excused=() proved_excused=()
if [ -n "${CONVECT_LONG:-}" ]; then
  family=ALL native_excused=(WriteSame10.UnmapUntilEnd WriteAtomic16.Simple)
  proved_excused=("${native_excused[@]}" GetLBAStatus.UnmapSingle)
fi
suite plain.log ALL "iscsi://${plain[0]}/$prefix:plain/0" "iscsi://${plain[1]}/$prefix:plain/0" &
suite native.log "$family" "iscsi://$native/$prefix:native/0" &
LIBISCSI_CHAP_TARGET_USERNAME=target LIBISCSI_CHAP_TARGET_PASSWORD=target-secret-01 \
  suite proved.log "$family" "iscsi://host%host-secret-0001@$proved/$prefix:proved/0?header_digest=crc32c" &
wait $(jobs -p | grep -v "^$daemon_pid$")
judge() { python3 "$root/tests/e2e/iscsi_suite.py" "$@"; }
judge plain.log WriteSame10.UnmapUntilEnd WriteAtomic16.Simple GetLBAStatus.UnmapSingle Sanitize.Reset
judge native.log ${native_excused[@]+"${native_excused[@]}"}
judge proved.log ${proved_excused[@]+"${proved_excused[@]}"}

say "what may only be read"
convect export create fixed pool/plain iscsi --portal 127.0.0.1:0 --read-only yes >/dev/null
iscsi-test-cu --dataloss --test=ALL.ReadOnly "iscsi://$(portals fixed)/$prefix:fixed/0" >fixed.log 2>&1 </dev/null
judge fixed.log

say "qemu-img in and out"
export_iscsi image image 127.0.0.1:0
url="iscsi://$(portals image)/$prefix:image/0"
head -c 48M /dev/urandom >data.img
truncate -s 64M data.img
qemu-img convert -n -f raw -O raw data.img "$url"
qemu-img compare -f raw -F raw data.img "$url"
qemu-img convert -f raw -O qcow2 "$url" out.qcow2
qemu-img compare -f raw -F qcow2 data.img out.qcow2

say "an initiator that the volume bypasses is known by its name"
convect volume set pool/image --bypass iqn.2026-11.test:backup >/dev/null
qemu-img convert -f raw -O raw "$url" all.img
convect volume show pool/image | grep -q '(0 reads and 0 writes' || fail "somebody else was bypassed"
qemu-img convert --image-opts -O raw \
  "driver=iscsi,transport=tcp,portal=$(portals image),target=$prefix:image,lun=0,initiator-name=iqn.2026-11.test:backup" all.img
convect volume show pool/image | grep '^bypassed:' | grep -qv '(0 reads' || fail "the backup was not bypassed"

say "it comes back with its pool"
restart_daemon
mapfile -t plain < <(portals plain)
iscsi-inq "iscsi://${plain[0]}/$prefix:plain/0" >/dev/null
grep -q 'host-secret\|target-secret' daemon.log daemon.out && fail "a secret was logged"
convect --json export show proved | grep -q 'host-secret\|target-secret' && fail "a secret is shown"
convect export delete plain --yes
stop_daemon
