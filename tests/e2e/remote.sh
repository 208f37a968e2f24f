#!/usr/bin/env bash
# The command line to a daemon by TLS: pinned certificates, authorities, tokens, contexts, streams both ways, jobs that
# are followed, and each thing that can be wrong with one clear line.
# timeout: 240
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

write_config
port="$(free_port)"
printf 'listen = "127.0.0.1:%s"\nremote_paths = { sockets = ["%s"] }\n' "$port" "$work" >>convect.toml
start_daemon
server="https://127.0.0.1:$port"
pin="sha256:$(sed -n "s|.*certificate's SHA-256 fingerprint is \(.*\)|\1|p" daemon.log | tail -n 1)"
admin="$(convect token create all --role admin 2>/dev/null)"
operator="$(convect token create work --role operator 2>/dev/null)"
viewer="$(convect token create look --role viewer 2>/dev/null)"
short="$(convect token create short --role viewer --expires 1m 2>/dev/null)"
# From here on nothing but TLS is used, unless it is said; and no contexts but the test's.
socket="$CONVECT_SOCKET"
unset CONVECT_SOCKET
export XDG_CONFIG_HOME="$work/configuration"
at() { # SERVER TOKEN ARG...
  CONVECT_TOKEN="$2" "$CONVECT_BIN/convect" --server "$1" --pin "$pin" "${@:3}"
}
by() { at "$server" "$@"; } # TOKEN ARG...
refused() { # EXIT_CODE WORDS COMMAND...: one line that has them
  local status=0
  "${@:3}" >out 2>told || status=$?
  [ "$status" = "$1" ] || fail "exit code $status of ${*:3}: $(cat out told)"
  [ "$(wc -l <told)" = 1 ] || fail "not one line: $(cat told)"
  grep -qF -- "$2" told || fail "'$2' is not in: $(cat told)"
}

say "everything that the socket gives, by role"
by "$admin" pool create tank fast "model:ssd-sata:$work/a?size=512M" slow "model:hdd-7200:$work/b?size=1G" --accept-unmirrored >out ||
  fail "$(cat out)"
by "$operator" volume create tank/disk --size 64M >/dev/null
by "$viewer" volume list | grep -q '^tank/disk' || fail "no volume"
[ "$(by "$viewer" --json pool list | field 'd["items"][0]["name"]')" = tank ] || fail "no JSON"
by "$operator" export create disk tank/disk nbd --listen "unix:$work/disk.sock" >/dev/null
nbd_of disk "disk.pwrite(bytes(range(256)) * 4096, 0); disk.flush()"
by "$viewer" map tank/disk --cells 8 >/dev/null
by "$viewer" explain tank/disk 0 | grep -q fast || fail "nothing is explained"
by "$viewer" pool iostat tank --watch 0.1 --count 2 | grep -c '^tank' | grep -qx 2 || fail "no watch"
refused 6 'look lacks permission: use a token with the role operator' by "$viewer" volume create tank/no --size 1M
refused 6 'work lacks permission: use a token with the role admin' by "$operator" pool destroy tank --yes
refused 2 'the absolute path' by "$admin" drive show file:here
by "$admin" audit | grep -q ' work  *127.0.0.1  *VolumeCreate  *asked' || fail "the log of changes does not tell"

say "a job is followed, and what is live is seen"
by "$operator" pool scrub tank --wait || fail "the scrub was not followed"
(by "$viewer" --json top || true) | head -n 2 >live
[ "$(wc -l <live)" = 2 ] || fail "nothing is live"
head -n 1 live | field 'd["pools"][0]["name"]' | grep -qx tank

say "streams, both ways and refused"
by "$operator" snapshot create tank/disk@one >/dev/null
by "$operator" send tank/disk@one 2>/dev/null >stream || fail "not sent"
by "$operator" receive tank/copy <stream >out || fail "not received"
grep -q 'tank/copy@one received' out || fail "$(cat out)"
by "$operator" export create copy tank/copy nbd --listen "unix:$work/copy.sock" >/dev/null
nbd_of copy "assert copy.pread(1 << 20, 0) == bytes(range(256)) * 4096"
send_to() { by "$1" receive "$2" <"$3"; }
refused 6 'look lacks permission' by "$viewer" send tank/disk@one
refused 6 'look lacks permission' send_to "$viewer" tank/other stream
head -c 100000 /dev/urandom >noise
head -c 64M /dev/zero >>noise
refused 1 'stream' send_to "$operator" tank/noise noise
head -c 300000 stream >part
refused 1 '--resume' send_to "$operator" tank/part part
by "$operator" send tank/disk@one --resume "$(by "$operator" --json receive tank/part --status | field 'd["token"]')" 2>/dev/null |
  by "$operator" receive tank/part >out || fail "it does not go on: $(cat out)"

say "each thing that is wrong is told in one line"
other="sha256:$(printf '0%.0s' {1..64})"
refused 7 "does not match the pinned $other" env CONVECT_TOKEN="$admin" "$CONVECT_BIN/convect" --server "$server" --pin "$other" pool list
grep -qF "$pin" told || fail "it does not tell the certificate's own"
refused 6 'token create' by convect_0000000000000000_00 pool list
refused 2 'set CONVECT_TOKEN' convect --server "$server" --pin "$pin" pool list
refused 2 '--pin' env CONVECT_TOKEN="$admin" "$CONVECT_BIN/convect" --server "$server" pool list
refused 2 'https://' at "http://127.0.0.1:$port" "$admin" pool list
nobody="$(free_port)"
refused 7 "no daemon responds at https://127.0.0.1:$nobody" at "https://127.0.0.1:$nobody" "$admin" pool list
refused 7 'cannot be reached' at "https://no-such-host.invalid:1" "$admin" pool list
stranger() { # NAME ARG...: another server than a daemon, whose port is in the file of its name
  openssl s_server -www -accept 127.0.0.1:0 "${@:2}" >"$1" 2>&1 &
  defer "kill $! 2>/dev/null"
  wait_until 20 port_of "$1"
}
port_of() { sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' "$1" | grep .; }
stranger older -tls1_2 -cert state/certificate.pem -key state/key.pem
refused 7 'TLS 1.3' at "https://127.0.0.1:$(port_of older)" "$admin" pool list
refused 2 'without a daemon' by "$admin" check "$work/a"
for words in "$admin" "$operator" "$viewer"; do
  if grep -rqF "$words" configuration state daemon.log 2>/dev/null; then fail "a token was left somewhere"; fi
done

say "authorities in place of a pin"
trusting() { CONVECT_TOKEN="$viewer" convect --server "$1" --ca "$2" pool list; }
trusting "$server" state/certificate.pem | grep -q '^tank' || fail "it is not believed"
trusting "https://localhost:$port" state/certificate.pem | grep -q '^tank' || fail "it is not believed by name"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=other \
  -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:other.example \
  -keyout other.key -out other.pem 2>/dev/null
refused 7 'not signed by any of the given CAs' trusting "$server" other.pem
stranger other -cert other.pem -key other.key
refused 7 'not valid for the name' trusting "https://127.0.0.1:$(port_of other)" other.pem
refused 1 'cannot use the certificates' trusting "$server" convect.toml

say "contexts"
(umask 077 && printf '%s\n' "$operator" >token && cp token open && chmod 640 open)
refused 6 'add --yes' convect context add here --server "$server"
convect context add here --server "$server" --token-file token --yes >out 2>told || fail "$(cat told)"
grep -qF "$pin" told || fail "it does not show the fingerprint: $(cat told)"
on_terminal() { # WORD COMMAND...: on a terminal of its own, where this word is typed once it asks; its output and end
  python3 - "$@" <<'PYTHON'
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
said, typed = b"", False
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    said += part
    if not typed and b"to continue: " in said:
        os.write(terminal, sys.argv[1].encode() + b"\n")
        typed = True
print(said.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
}
on_terminal no "$CONVECT_BIN/convect" context add asked --server "$server" >told || true
grep -q 'nothing was changed' told || fail "$(cat told)"
if convect context list | grep -q asked; then fail "it is there though it was not confirmed"; fi
on_terminal asked "$CONVECT_BIN/convect" context add asked --server "$server" >told
grep -qF "$pin" told || fail "it does not show the fingerprint: $(cat told)"
convect context list | grep -q "asked.*$pin" || fail "it is not pinned: $(convect context list)"
convect context remove asked >/dev/null
convect context add pinned --server "$server" --pin "$pin" >/dev/null
convect context add trusted --server "$server" --ca state/certificate.pem --token-file open >/dev/null
refused 4 'already' convect context add here --server "$server" --pin "$pin"
[ "$(stat -c %a configuration/convect/contexts.json)" = 600 ] || fail "others may read the contexts"
[ "$(stat -c %a configuration/convect)" = 700 ] || fail "others may look into the folder"
convect --context here volume list | grep -q '^tank/disk' || fail "no volume"
CONVECT_CONTEXT=here convect volume list | grep -q '^tank/disk' || fail "no volume"
refused 2 'set CONVECT_TOKEN' convect --context pinned volume list
CONVECT_TOKEN="$viewer" convect --context pinned volume list | grep -q '^tank/disk' || fail "no volume"
refused 1 'chmod 600' convect --context trusted volume list
refused 7 'no daemon responds at /run' convect --context local volume list
convect context use here >/dev/null
(cd / && convect volume list | grep -q '^tank/disk') || fail "not from another folder"
convect context list | grep -q '^\*  *here' || fail "$(convect context list)"
[ "$(convect --json context list | field 'd["current"]')" = here ] || fail "no JSON"
convect --socket "$socket" token list | grep -q '^look' || fail "the socket is not taken"
refused 6 'use a token with the role admin' convect token list
convect context remove here >/dev/null
convect context list | grep -q '^\*  *local' || fail "$(convect context list)"
refused 2 'choose one of local, pinned, trusted' convect --context here volume list

say "another certificate is another server, and an expired token counts no more"
stop_daemon
rm state/certificate.pem state/key.pem
CONVECT_SOCKET="$socket" start_daemon
export CONVECT_TOKEN="$viewer"
refused 7 'compare with the fingerprint in its log' convect --context pinned pool list
unset CONVECT_TOKEN
convect context remove pinned >/dev/null
convect context add pinned --server "$server" --yes >/dev/null 2>&1
sleep_until_expired() { ! CONVECT_TOKEN="$short" convect --context pinned pool list; }
wait_until 70 sleep_until_expired
export CONVECT_TOKEN="$short"
refused 6 'token short has expired: ask an administrator' convect --context pinned pool list
