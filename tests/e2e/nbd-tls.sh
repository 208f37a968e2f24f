#!/usr/bin/env bash
# NBD by TLS with libnbd's tools and QEMU's as clients: required and optional, with and without certificates of clients,
# also after a restart; and addresses that other machines can reach need an explicit word.
# timeout: 120
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# An authority, and what it signed: sign NAME SUBJECT-ALTERNATIVE-NAMES.
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "/CN=$1" \
    -keyout "$1-key.pem" -out "$1.pem" -addext basicConstraints=critical,CA:TRUE 2>/dev/null
}
sign() { # AUTHORITY FILE NAMES
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$(basename "$2")" \
    -keyout "$2-key.pem" -out request.pem 2>/dev/null
  printf 'subjectAltName=%s\n' "$3" >names
  openssl x509 -req -in request.pem -CA "$1.pem" -CAkey "$1-key.pem" -CAcreateserial -days 30 -extfile names \
    -out "$2-cert.pem" 2>/dev/null
}
mkdir known foreign without
authority ours
authority other
sign ours server DNS:localhost,IP:127.0.0.1
sign ours known/client DNS:client
sign other foreign/client DNS:client
for client in known foreign without; do cp ours.pem "$client/ca-cert.pem"; done

start_daemon
create_pool pool 256M 1G
convect volume create pool/disk --size 128M
tls=(--tls-certificate "$work/server-cert.pem" --tls-key "$work/server-key.pem")
port="$(free_port)"
convect export create tls pool/disk nbd --listen "tcp:127.0.0.1:$port" "${tls[@]}"
convect export create mutual pool/disk nbd --listen "unix:$work/mutual.sock" "${tls[@]}" --tls-client-ca "$work/ours.pem"
convect export create either pool/disk nbd --listen "unix:$work/either.sock" "${tls[@]}" --tls optional
by_tcp="nbds://localhost:$port/tls?tls-certificates=$work"
by_unix() { printf 'nbds+unix:///%s?socket=%s/%s.sock&tls-certificates=%s/%s\n' "$1" "$work" "$1" "$work" "$2"; }

say "nbdinfo and nbdcopy both ways, and nothing without TLS"
nbdinfo "$by_tcp/without" | grep -q 'with TLS'
head -c 32M /dev/urandom >data.img
truncate -s 128M data.img
nbdcopy --flush data.img "$by_tcp/without"
nbdcopy "$by_tcp/without" back.img
cmp data.img back.img
if nbdinfo --size "nbd://localhost:$port/tls" >plain 2>&1; then fail "without TLS: $(cat plain)"; fi

say "certificates of clients"
nbdinfo --size "$(by_unix mutual known)" | grep -qx $((128 << 20))
for client in foreign without; do
  if nbdinfo --size "$(by_unix mutual "$client")" >refused 2>&1; then fail "$client: $(cat refused)"; fi
done

say "qemu-img compares and qemu-nbd passes it on"
object() { printf 'tls-creds-x509,id=tls,endpoint=client,dir=%s/%s' "$work" "$1"; }
image() { printf 'driver=nbd,server.type=unix,server.path=%s/%s.sock,export=%s,tls-creds=tls,tls-hostname=localhost' "$work" "$1" "$1"; }
qemu-img convert -O raw --object "$(object known)" --image-opts "$(image mutual)" qemu.img
cmp data.img qemu.img
if qemu-img info --object "$(object foreign)" --image-opts "$(image mutual)" >refused 2>&1; then fail "$(cat refused)"; fi
qemu-nbd --persistent --fork --pid-file=qemu-nbd.pid -k "$work/through.sock" --object "$(object known)" \
  --image-opts "$(image mutual)"
defer 'kill "$(cat qemu-nbd.pid)" 2>/dev/null'
nbdcopy "nbd+unix:///?socket=$work/through.sock" through.img
cmp data.img through.img

say "optional TLS"
nbdinfo "$(by_unix either without)" | grep -q 'with TLS'
nbdinfo "$(uri either)" | grep -q 'without TLS'

say "after a restart"
restart_daemon
nbdcopy "$by_tcp/without" back.img
cmp data.img back.img

say "beyond the loopback"
refused() {
  if convect export create open pool/disk nbd --listen "$@" >refused 2>&1; then fail "$*: it is taken"; fi
  grep -q -- '--without-authentication yes' refused || fail "$(cat refused)"
}
refused tcp:0.0.0.0:0
refused tcp:0.0.0.0:0 "${tls[@]}"
convect export create open pool/disk nbd --listen tcp:0.0.0.0:0 --without-authentication yes
convect export create proved pool/disk nbd --listen tcp:0.0.0.0:0 "${tls[@]}" --tls-client-ca "$work/ours.pem"

say "a connection too many is refused with a reason"
convect export create few pool/disk nbd --listen "unix:$work/few.sock" --max-connections 1
nbdsh -c "
import nbd, subprocess
h = nbd.NBD(); h.connect_uri('$(uri few)')
told = subprocess.run(['qemu-img', 'info', 'nbd+unix:///few?socket=$work/few.sock'], capture_output=True, text=True)
assert 'raise max-connections' in told.stderr, told
"
