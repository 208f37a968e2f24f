#!/usr/bin/env bash
# What peers without the right try, through the whole daemon: an operator's token and paths of the host, names with
# characters for a terminal, a log of changes whose end is gone, names that are no names, drives that are not ours, readers
# of metrics that say nothing, and logs that a peer would fill.
# timeout: 180
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

write_config
port="$(free_port)" metrics="$(free_port)"
mkdir -p allowed/sockets allowed/mounts allowed/secrets elsewhere
chmod -R go-w allowed
cat >>convect.toml <<TOML
listen = "127.0.0.1:$port"
metrics = "127.0.0.1:$metrics"
remote_paths = { sockets = ["$work/allowed/sockets"], mounts = ["$work/allowed/mounts"], secrets = ["$work/allowed/secrets"] }
TOML
start_daemon
create_pool tank 256M 256M
convect volume create tank/disk --size 64M >/dev/null
operator="$(convect token create work --role operator 2>/dev/null)"
pin="sha256:$(sed -n "s|.*certificate's SHA-256 fingerprint is \(.*\)|\1|p" daemon.log | tail -n 1)"
by_operator() { CONVECT_SOCKET="" CONVECT_TOKEN="$operator" timeout 120 "$CONVECT_BIN/convect" --server "https://127.0.0.1:$port" --pin "$pin" "$@" </dev/null; }
refused() { # WORDS COMMAND...
  if "${@:2}" >out 2>told; then fail "it is done: ${*:2}"; fi
  grep -qF -- "$1" told || fail "'$1' is not in: $(cat told)"
}

say "an operator's token names paths of the configuration's folders alone"
mkfifo elsewhere/fifo allowed/secrets/fifo
printf 'name host\nsecret host-secret-0001\n' >elsewhere/secrets
cp elsewhere/secrets allowed/secrets/good
chmod 600 elsewhere/secrets allowed/secrets/good
ln -s "$work/elsewhere/secrets" allowed/secrets/link
ln -s "$work/elsewhere" allowed/mounts/link
for path in "$work/elsewhere" /etc "$work/allowed/mounts/../../elsewhere" "$work/allowed/mounts/link"; do
  refused "$work/allowed/mounts" by_operator export create bad tank/disk fuse --mount "$path"
done
for path in "$work/elsewhere/s" /etc/cron.d/s "$work/allowed/sockets/../s"; do
  refused "$work/allowed/sockets" by_operator export create bad tank/disk nbd --listen "unix:$path"
  refused "$work/allowed/sockets" by_operator export create bad tank/disk vhost-user-blk --path "$path"
done
for path in "$work/elsewhere/secrets" /etc/shadow "$work/elsewhere/fifo" "$work/allowed/secrets/link"; do
  refused "$work/allowed/secrets" by_operator export create bad tank/disk iscsi --portal 127.0.0.1:0 --chap "$path"
done
[ -z "$(find elsewhere -newer allowed/mounts/link)" ] || fail "something was made: $(find elsewhere -newer allowed/mounts/link)"
# A FIFO is no file of secrets in an allowed folder either, and nobody waits for who would write to it.
refused "fifo" by_operator export create bad tank/disk iscsi --portal 127.0.0.1:0 --chap "$work/allowed/secrets/fifo"
refused "fifo" convect export create bad tank/disk iscsi --portal 127.0.0.1:0 --chap "$work/elsewhere/fifo"
mkdir allowed/mounts/files
by_operator export create good tank/disk nbd --listen "unix:$work/allowed/sockets/good" >/dev/null
by_operator export create proved tank/disk iscsi --portal 127.0.0.1:0 --chap "$work/allowed/secrets/good" >/dev/null
by_operator export create files tank/disk fuse --mount "$work/allowed/mounts/files" >/dev/null
[ -f allowed/mounts/files/files ] && [ ! -x allowed/mounts/files/files ] || fail "$(ls -l allowed/mounts/files)"
for name in files proved good; do convect export delete "$name" --yes >/dev/null; done

say "what others named does not reach a terminal as it is"
escape=$'\033]0;owned\007'
refused "" convect volume create "tank/$escape" --size 1M
refused "" convect pool import --drive "file:$work/elsewhere/$escape"
refused "" by_operator volume show "tank/$escape"
printf '%s' "$escape" >elsewhere/not-a-drive
refused "" convect pool import "$escape" --drive "file:$work/elsewhere/not-a-drive"
for file in out told daemon.log; do
  ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]' "$file" || fail "control characters in $file: $(cat -v "$file" | tail -n 5)"
done

say "drives that are not ours: a list all the same, with a note for each"
truncate -s 64M elsewhere/empty.img elsewhere/ext4.img
mkfs.ext4 -q elsewhere/ext4.img 2>/dev/null
convect pool create second slow "file:$work/second.img?size=256M" --accept-unmirrored >/dev/null
convect pool export second >/dev/null
ln -s "$work/second.img" elsewhere/alias
truncate -s 64M elsewhere/busy.img
flock -x elsewhere/busy.img sleep 100 &
busy=$!
defer 'kill $busy 2>/dev/null'
is_busy() { ! flock -n elsewhere/busy.img true; }
wait_until 10 is_busy
drives=()
for name in second.img elsewhere/alias elsewhere/empty.img elsewhere/ext4.img elsewhere/busy.img elsewhere/fifo elsewhere/none; do
  drives+=(--drive "file:$work/$name")
done
convect pool import "${drives[@]}" >listed 2>noted || fail "no list: $(cat listed noted)"
[ "$(grep -c '^second' listed)" = 1 ] || fail "$(cat listed)"
for name in busy.img fifo none; do grep -q "$name" listed noted || fail "$name is passed over without a word: $(cat listed noted)"; done
convect pool import second "${drives[@]}" >/dev/null || fail "it is not imported beside them"
[ "$(head -c 1082 elsewhere/ext4.img | tail -c 2 | od -An -tx1 | tr -d ' ')" = 53ef ] || fail "the file system is written to"
kill "$busy"

say "names that are refused are logged, with why and what to do"
convect export create open tank/disk iscsi --portal 127.0.0.1:0 --initiators iqn.2026-11.test:known >/dev/null
portal="$(convect --json export show open | field 'd["address"].split("/")[0].removeprefix("iscsi:")')"
: >before.log
cp daemon.log before.log
if iscsi-inq -i 'no name at all' "iscsi://$portal/iqn.2026-11.io.convect:open/0" >inquiry 2>&1; then fail "it is let in"; fi
is_logged() { tail -n +"$(($(wc -l <before.log) + 1))" daemon.log | grep -q 'no name at all'; }
wait_until 20 is_logged
if iscsi-inq -i iqn.2026-11.test:other "iscsi://$portal/iqn.2026-11.io.convect:open/0" >inquiry 2>&1; then fail "it is let in"; fi
convect export delete open --yes >/dev/null

say "readers of metrics that say nothing keep no other from them"
python3 - "$metrics" <<'PYTHON' &
import socket, sys, time
held = []
while True:
    try:
        s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1)
        held.append(s)
    except OSError:
        pass
    if len(held) == 400:
        open("held", "w").close()
        held = held[200:]
PYTHON
holder=$!
defer 'kill $holder 2>/dev/null'
wait_until 60 test -f held
answers_metrics() { curl -sS --max-time 60 --interface 127.0.0.2 "http://127.0.0.1:$metrics/metrics" -o figures && grep -q '^convect_build_info' figures; }
for try in {1..5}; do answers_metrics || fail "no metrics beside silent readers"; done
kill "$holder"

say "a peer does not fill the log"
convect export create nbd tank/disk nbd --listen tcp:127.0.0.1:0 >/dev/null
convect export create scsi tank/disk iscsi --portal 127.0.0.1:0 >/dev/null
nbd_port="$(convect --json export show nbd | field 'd["address"].rsplit(":", 1)[1].split("/")[0]')"
scsi_port="$(convect --json export show scsi | field 'd["address"].split("/")[0].rsplit(":", 1)[1]')"
size_before="$(stat -c %s daemon.log)"
python3 - "$nbd_port" "$scsi_port" "$port" "$metrics" <<'PYTHON'
import socket, sys
wrong = [bytes(48), b"\xff" * 48, b"GET / HTTP/9.9\r\n\r\n", bytes([0x43, 0x87]) + bytes(46), b"IHAVEOPT" + b"\xff" * 12]
for turn in range(600):
    for port in sys.argv[1:]:
        with socket.create_connection(("127.0.0.1", int(port)), 60) as s:
            try:
                s.sendall(wrong[turn % len(wrong)])
            except OSError:
                pass
PYTHON
grown=$(($(stat -c %s daemon.log) - size_before))
[ "$grown" -lt 65536 ] || fail "the log has grown by $grown bytes: $(tail -n 5 daemon.log)"

say "a full pool: what needs no space is done by each protocol, and the rest says that there is none"
convect volume create tank/small --size 1G >/dev/null
export_nbd small tank/small
mkdir mounted
convect export create small-file tank/small fuse --mount "$work/mounted" >/dev/null
nbd_of small "
at, data = 0, bytes(range(256)) * 4096
while at < 1 << 30 and not full(small, data, at):
    at += len(data)
assert at < 1 << 30, 'the pool does not fill'
# Parts of blocks and whole ones, in a hole and in data: a discard fails nowhere.
for offset, length in ((512, 1024), (4096, 8192), (at + 512, 512), (at + (1 << 20), 4096 + 512)):
    small.trim(length, offset)
assert small.pread(4096, at + (1 << 20)) == bytes(4096)
assert small.pread(512, 0) == data[:512]
small.flush()"
fallocate --punch-hole --offset $((2 << 20)) --length 512 mounted/small-file
fallocate --punch-hole --offset $((3 << 20)) --length 8192 mounted/small-file
[ "$(dd if=mounted/small-file bs=1M skip=3 count=1 status=none | head -c 8192 | tr -d '\0' | wc -c)" = 0 ] || fail "not zeroes"
convect export delete small-file --yes >/dev/null

say "a log of changes whose end is gone is known by the pools' labels"
convect volume create tank/last --size 1M >/dev/null
stop_daemon
cp state/audit.log whole.log
head -n -2 whole.log >state/audit.log
start_daemon
is_an_alert() { convect alert list --json | grep -q '"audit_altered"'; }
wait_until 30 is_an_alert
if convect audit >audit 2>told; then fail "the cut log is taken as it is"; fi
grep -q 'audit log was modified' told || fail "$(cat told)"
stop_daemon
