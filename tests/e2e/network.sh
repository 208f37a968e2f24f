#!/usr/bin/env bash
# The network of a host that is not as it should be, in a network namespace of its own: addresses that come after the
# daemon's start, go and return; a name server that never answers; hosts of IPv6 networks that take all that they can; and
# as many exports as a host may have.
# timeout: 300
# shellcheck source=tests/e2e/lib.sh
if [ -z "${CONVECT_IN_NAMESPACE:-}" ]; then
  user=()
  [ "$(id -u)" = 0 ] || user=(--user --map-root-user)
  CONVECT_IN_NAMESPACE=1 exec unshare "${user[@]}" --net --mount bash "${BASH_SOURCE[0]}"
fi
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

ip link set lo up
# The only name server takes questions and answers none.
python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
open("asked", "w").close()
while True:
    question = s.recv(4096)
    with open("asked", "ab") as file:
        file.write(question + b"\n")' &
name_server=$!
defer 'kill $name_server 2>/dev/null'
printf 'nameserver 127.0.0.1\n' >resolv.conf
printf 'hosts: dns\n' >nsswitch.conf
mount --bind resolv.conf "$(readlink -f /etc/resolv.conf)"
mount --bind nsswitch.conf /etc/nsswitch.conf
wait_until 20 test -f asked

prefix=iqn.2026-11.io.convect
state_of() { convect --json export show "$1" | field 'd["state"]'; }
logs_in() { iscsi-inq "iscsi://$1/$prefix:$2/0" >inquiry 2>&1; }
is_listed() { iscsi-ls "iscsi://$1" 2>/dev/null | grep -q "$prefix:$2"; }
has_alert() { convect alert list --json | grep -q "\"$1\""; }
no_alert() { ! has_alert "$1"; }
nbd_answers() { nbdinfo --size "nbd://$1/$2" >size 2>&1; }

start_daemon
create_pool tank 256M 512M
convect volume create tank/disk --size 64M >/dev/null
convect volume create tank/other --size 64M >/dev/null

say "addresses that come after the start, go and return"
ip addr add 10.77.0.1/32 dev lo
ip -6 addr add fd77::1/128 dev lo nodad
v4=10.77.0.1:3260 v6='[fd77::1]:3260'
convect export create late tank/disk iscsi --portal "$v4,$v6" --without-authentication yes >/dev/null
convect export create nlate tank/other nbd --listen tcp:10.77.0.1:10809 --without-authentication yes >/dev/null
logs_in "$v4" late || fail "$(cat inquiry)"
logs_in "$v6" late || fail "$(cat inquiry)"
nbd_answers 10.77.0.1:10809 nlate || fail "$(cat size)"
stop_daemon
ip addr del 10.77.0.1/32 dev lo
ip -6 addr del fd77::1/128 dev lo
start_daemon
export_nbd local tank/disk
wait_until 30 has_alert export_refused
if logs_in "$v4" late; then fail "there is no such address"; fi
ip addr add 10.77.0.1/32 dev lo
ip -6 addr add fd77::1/128 dev lo nodad
wait_until 60 logs_in "$v4" late
wait_until 60 logs_in "$v6" late
wait_until 60 nbd_answers 10.77.0.1:10809 nlate
wait_until 30 no_alert export_refused
ip addr del 10.77.0.1/32 dev lo
if timeout 10 "$(command -v iscsi-inq)" "iscsi://$v4/$prefix:late/0" >inquiry 2>&1; then fail "the address is gone"; fi
logs_in "$v6" late || fail "the other portal is not served: $(cat inquiry)"
ip addr add 10.77.0.1/32 dev lo
wait_until 60 logs_in "$v4" late
wait_until 60 nbd_answers 10.77.0.1:10809 nlate

say "a name server that does not answer holds nobody up"
convect alert target create webhook hook --url http://receiver.example.com/ >/dev/null
convect alert target create email mail --mail-server mail.example.com --security starttls --from a@example.com --to b@example.com >/dev/null
for name in hook mail; do
  (convect alert target test "$name" >"$name.out" 2>"$name.told" && echo reached || echo failed) >"$name.result" &
done
(convect --server https://convect.example.com:8443 --token-file <(echo none) pool list >remote.out 2>remote.told && echo reached || echo failed) >remote.result &
was_asked() { grep -aqi "$1" asked; }
wait_until 20 was_asked receiver
# Meanwhile hosts and administrators are served.
nbd_of local "disk = local
disk.pwrite(b'n' * 4096, 0)
disk.flush()
assert disk.pread(4096, 0) == b'n' * 4096"
convect volume list >/dev/null
logs_in "$v6" late || fail "$(cat inquiry)"
for name in hook mail remote; do
  wait_until 60 test -s "$name.result"
  grep -qx failed "$name.result" || fail "$name: reached"
done
grep -q 'receiver.example.com' hook.told || fail "$(cat hook.told)"
grep -q 'mail.example.com' mail.told || fail "$(cat mail.told)"
grep -q 'convect.example.com' remote.told || fail "$(cat remote.told)"
# A portal by a name: the change is refused or made within the limit of a look-up, and nothing else waits for it.
convect export create named tank/other iscsi --portal storage.example.com:3260 --without-authentication yes >named.out 2>&1 || true
convect volume list >/dev/null
for name in hook mail; do convect alert target delete "$name" --yes >/dev/null; done
convect export delete named --yes >/dev/null 2>&1 || true

say "one IPv6 network with many addresses keeps no other from a log-in"
ip -6 route add local fd77:1::/48 dev lo
ip -6 route add local fd77:2::/48 dev lo
python3 - <<'PYTHON' &
import socket, time
held = []
# More silent connections than a portal takes, from as many /64 of one /48.
for index in range(1400):
    s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    s.setsockopt(socket.IPPROTO_IPV6, 75, 1)  # IPV6_FREEBIND is 78; transparent 75
    s.setsockopt(socket.IPPROTO_IPV6, 78, 1)
    s.setblocking(False)
    s.bind((f"fd77:1:0:{index:x}::1", 0))
    s.connect_ex(("fd77::1", 3260))
    held.append(s)
open("held", "w").close()
time.sleep(600)
PYTHON
holder=$!
defer 'kill $holder 2>/dev/null'
wait_until 60 test -f held
for try in {1..10}; do
  python3 - <<'PYTHON' || fail "another network is kept out"
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
s.setsockopt(socket.IPPROTO_IPV6, 78, 1)
s.settimeout(20)
s.bind(("fd77:2::1", 0))
s.connect(("fd77::1", 3260))
# A log-in request without keys of RFC 7143, 11.12: the target answers it.
s.sendall(bytes([0x43, 0x87, 0, 0]) + bytes(4) + bytes([0x40, 0, 0, 1, 0, 0]) + bytes(2) + bytes(4) + bytes(28))
assert len(s.recv(48)) > 0
PYTHON
done
kill "$holder"

say "1,500 exports"
# By one connection: the command itself would be started as many times.
python3 - <<'PYTHON'
import http.client, json, os, socket
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["CONVECT_SOCKET"])
connection = Unix("convect")
for number in range(1, 1501):
    parameters = {"listen": f"unix:{os.getcwd()}/m{number}"}
    body = {"name": f"many{number}", "pool": "tank", "volume": "disk", "kind": "nbd", "parameters": parameters}
    connection.request("POST", "/v1/exports", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    told = answer.read()
    assert answer.status == 201, told
PYTHON
[ "$(convect --json export list | field 'len([e for e in d["items"] if e["name"].startswith("many")])')" = 1500 ] || fail "exports are missing"
restart_daemon
python3 - <<'PYTHON'
import nbd
for number in range(1, 1501):
    handle = nbd.NBD()
    handle.connect_uri(f"nbd+unix:///many{number}?socket=m{number}")
    assert handle.get_size() == 64 << 20
    if number % 100 == 0:
        handle.pwrite(bytes([number % 251]) * 4096, 0)
        assert handle.pread(4096, 0) == bytes([number % 251]) * 4096
    handle.shutdown()
PYTHON
stop_daemon
