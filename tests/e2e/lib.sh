# shellcheck shell=bash
# Sourced by every end-to-end test: a daemon in the test's own folder, its commands, and a tidy end
# whatever happens. A test runs in a fresh folder (scripts/e2e.sh) and may use any name in it.
set -Eeuo pipefail
# What a test says is seen also from within a function whose output is thrown away.
exec 3>&1

root="${CONVECT_ROOT:-$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)}"
CONVECT_BIN="${CONVECT_BIN:-$root/target/debug}"
work="$PWD"
# Debian's Python, which has the packages that tests use. Another one may come first in the path, by a wrapper that takes
# ten times as long to start, and tests start it thousands of times.
mkdir -p "$work/.programs"
ln -sf /usr/bin/python3 "$work/.programs/python3"
export PATH="$work/.programs:$PATH:/usr/local/sbin:/usr/sbin:/sbin" LC_ALL=C.UTF-8
# For content.py, of which nothing is kept in the sources' folder.
export PYTHONPATH="$root/tests/e2e" PYTHONDONTWRITEBYTECODE=1
export CONVECT_SOCKET="$work/convect.sock"
daemon_pid=""
deferred=()
loops=()

say() { printf '%s %s\n' "--" "$*"; }

fail() {
  printf 'FAILED: %s\n' "$*" >&3
  exit 1
}

# Runs when the test ends, the last first.
defer() { deferred=("$*" "${deferred[@]}"); }

finish() {
  local status=$? command loop
  trap - ERR
  set +e
  for command in "${deferred[@]}"; do
    eval "$command"
  done
  for loop in "${loops[@]}"; do
    losetup -d "$loop"
  done
  [ -n "$daemon_pid" ] && kill -KILL "$daemon_pid" 2>/dev/null && wait "$daemon_pid" 2>/dev/null
  if [ "$status" != 0 ] && [ -f daemon.log ]; then
    echo "-- the end of the daemon's log:"
    tail -n 25 daemon.log
  fi
  # What was mounted belongs to a daemon that is gone.
  awk -v at="$work/" 'index($2, at) == 1 {print $2}' /proc/self/mounts | while read -r mount; do
    umount -l "$mount" 2>/dev/null || fusermount3 -uz "$mount" 2>/dev/null
  done
  exit "$status"
}
trap finish EXIT
trap 'exit 143' TERM INT
trap 'echo "FAILED in ${BASH_SOURCE[0]##*/} line $LINENO: $BASH_COMMAND" >&3' ERR

convect() { "$CONVECT_BIN/convect" "$@" </dev/null; }
lab() { "$CONVECT_BIN/convect-lab" --convect "$CONVECT_BIN/convect" "$@" </dev/null; }

# Runs Python with connected libnbd handles of exports, by their names: nbd_of "ONE TWO..." CODE. `full`
# says whether a write found no space.
nbd_of() {
  local name connected=""
  for name in $1; do connected+="$name = connect('$(uri "$name")')"$'\n'; done
  nbdsh -c "
import nbd, errno
def connect(uri):
    handle = nbd.NBD()
    handle.connect_uri(uri)
    return handle
def full(handle, data, at):
    try:
        handle.pwrite(data, at)
    except nbd.Error as error:
        assert error.errnum == errno.ENOSPC, error
        return True
    return False
$connected" -c "$2"
}

# Prints the SHA-256 of the standard input. By OpenSSL, which uses the processor's instructions: coreutils take seven
# times as long, which was most of some tests.
sha256() { openssl dgst -sha256 -r | cut -d' ' -f1; }

# Prints a value out of JSON on the standard input: field 'd["size"]'. Tests do it thousands of times, and to import `json`
# takes as long as to start Python: this is the scanner beneath it, with its settings.
field() { python3 -IS -c 'import _json, sys
class settings:
    strict, object_hook, object_pairs_hook, array_hook = True, None, None, None
    parse_float, parse_int, parse_constant = float, int, None  # There is no NaN in JSON.
text = sys.stdin.read()
scan = _json.make_scanner(settings)
try:
    d, end = scan(text, len(text) - len(text.lstrip()))
except StopIteration as error:
    raise SystemExit(f"no JSON: {text!r}") from error
assert not text[end:].strip(), f"more than JSON: {text!r}"
print(eval(sys.argv[1]))' "$1"; }

# A free TCP port of the loopback for a server that keeps it over a restart. It lies outside the range of ephemeral ports,
# so that the system assigns it to nobody meanwhile.
free_port() { python3 -c 'import random, socket
first = int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])
while True:
    port = random.SystemRandom().randrange(1024, max(first, 4096))
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
    print(port)
    break'; }

# Waits until a command succeeds, at most six times as long as the given seconds, which are enough on an idle machine: on
# a busy one time passes slower, and who waits in vain has failed anyway.
wait_until() {
  local started=$SECONDS limit=$((SECONDS + 6 * $1)) waited
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$limit" ] || fail "this did not come true in time: $*"
    # What takes long need not be noticed at once, as a look starts two programs or more: a tenth of what was waited later,
    # two seconds at most.
    waited=$((SECONDS - started))
    if [ "$waited" -lt 2 ]; then
      sleep 0.1
    elif [ "$waited" -lt 20 ]; then
      sleep "$((waited / 10)).$((waited % 10))"
    else
      sleep 2
    fi
  done
}

write_config() {
  [ -f convect.toml ] || cat >convect.toml <<TOML
socket = "$CONVECT_SOCKET"
state_dir = "$work/state"
TOML
}

daemon_is_ready() {
  kill -0 "$daemon_pid" 2>/dev/null || fail "the daemon ended at its start"
  grep -q '^ready$' daemon.out
}

start_daemon() {
  write_config
  : >daemon.out
  "$CONVECT_BIN/convect" serve --config convect.toml </dev/null >daemon.out 2>>daemon.log &
  daemon_pid=$!
  wait_until 60 daemon_is_ready
}

stop_daemon() {
  local pid=$daemon_pid
  daemon_pid=""
  kill -TERM "$pid"
  wait "$pid" || fail "the daemon ended with exit code $? on SIGTERM"
}

kill_daemon() {
  local pid=$daemon_pid
  daemon_pid=""
  kill -KILL "$pid"
  wait "$pid" 2>/dev/null || true
}

restart_daemon() {
  stop_daemon
  start_daemon
}

# A small pool: fast file, two slow files; more arguments go to `pool create`.
create_pool() { # NAME FAST_SIZE SLOW_SIZE [ARG...]
  local name=$1 fast=$2 slow=$3
  shift 3
  convect pool create "$name" fast "file:$work/$name-fast.img?size=$fast" \
    slow stripe:64k "file:$work/$name-slow1.img?size=$slow" "file:$work/$name-slow2.img?size=$slow" \
    --accept-unmirrored "$@"
}

# Puts a free loop device over a file and the device's name into a variable. Only what is attached
# still is detached when the test ends: once let go of, the device may be that of another test. Other
# tests take and give back devices meanwhile, so this is tried again; that the file can be read is not.
attach_loop() { # VARIABLE FILE [ARG...]
  local -n attached=$1
  local try
  head -c 4096 "$2" >/dev/null
  for try in {1..30}; do
    attached="$(losetup --find --show "${@:3}" "$2")" && break
    [ "$try" -lt 30 ] || fail "no loop device could be put over $2"
    sleep 1
  done
  loops+=("$attached")
}

detach_loop() { # DEVICE
  local kept=() other file
  for other in "${loops[@]}"; do
    [ "$other" = "$1" ] || kept+=("$other")
  done
  file="$(losetup -n -O BACK-FILE "$1")"
  losetup -d "$1"
  loops=("${kept[@]}")
  # It lets go of the file a moment after the command.
  wait_until 20 lets_go "$1" "$file"
}

lets_go() { [ "$(losetup -n -O BACK-FILE "$1" 2>/dev/null)" != "$2" ]; }

export_nbd() { # NAME POOL/VOLUME
  convect export create "$1" "$2" nbd --listen "unix:$work/$1.sock"
}

uri() { printf 'nbd+unix:///%s?socket=%s\n' "$1" "$work/$1.sock"; }
