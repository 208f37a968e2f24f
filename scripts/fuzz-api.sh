#!/usr/bin/env bash
# Fuzzes every endpoint of the HTTP interface from its OpenAPI description, against a daemon with modelled drives that
# is built already: fuzz-api.sh [--seconds N] [--seed N]. No 5xx, no status, content type or header that the description
# does not name, no answer of another shape. Half of the rounds take random words, half mostly those of
# things that are there (tests/e2e/api_words.py). As root the daemon runs as nobody, so that no random path is one that
# matters. The seed is 1 unless it is given (`random` draws one). Rounds that failed once are repeated first, for a few
# seconds each: tests/regressions/interface.txt, where a failure of a drawn seed is recorded.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

version=4.32.5
seconds="${CONVECT_API_FUZZ_SECONDS:-120}"
seed=1
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds)
      [ $# -ge 2 ] || fail "--seconds needs a number"
      seconds=$2
      shift
      ;;
    --seed)
      [ $# -ge 2 ] || fail "--seed needs a number, or the word random"
      seed=$2
      shift
      ;;
    *) fail "fuzz-api knows --seconds N and --seed N, not '$1'" ;;
  esac
  shift
done
case "$seconds" in '' | *[!0-9]* | 0) fail "seconds are a whole number from 1 on, not '$seconds'" ;; esac
drawn=no
[ "$seed" != random ] || seed=$((RANDOM * 32768 + RANDOM)) drawn=yes
case "$seed" in '' | *[!0-9]*) fail "a seed is a whole number or the word random, not '$seed'" ;; esac
# Seconds of a round; the objects are created again before each. Both kinds of words have one.
round=$((seconds < 60 ? (seconds + 1) / 2 : 30))
# Seconds of a round that failed once.
again=8
regressions="$root/tests/regressions/interface.txt"

CONVECT_BIN="${CONVECT_BIN:-$(target_dir)/debug}"
[ -x "$CONVECT_BIN/convect" ] || fail "$CONVECT_BIN/convect is not built; run ./dev fuzz-api"
tools="$(target_dir)/schemathesis"
if [ "$("$tools/bin/st" --version 2>/dev/null | sed 's/.* //')" != "$version" ]; then
  step "setup: schemathesis $version"
  rm -rf "$tools"
  python3 -m venv "$tools" || fail "python3 makes no virtual environment: install python3-venv"
  "$tools/bin/pip" install -q --disable-pip-version-check "schemathesis==$version" ||
    fail "schemathesis could not be installed; run the line yourself to see why: pip install schemathesis==$version"
fi

work="$(mktemp -d)"
chmod 755 "$work"
daemon_pid=""
finish() {
  [ -z "$daemon_pid" ] || kill -KILL "$daemon_pid" 2>/dev/null || true
  wait
  rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

port="$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')"
server="https://127.0.0.1:$port"
export CONVECT_SOCKET="$work/s" CONVECT_FUZZ_WORK="$work" XDG_CONFIG_HOME="$work"
unset CONVECT_CONTEXT CONVECT_TOKEN
cp "$CONVECT_BIN/convect" "$work/convect"
cat >"$work/convect.toml" <<TOML
socket = "$CONVECT_SOCKET"
state_dir = "$work/state"
listen = "127.0.0.1:$port"
threads = 2
ram_tier = "64M"
map_cache = "16M"
TOML
as_nobody=()
if [ "$(id -u)" = 0 ]; then
  as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chown 65534:65534 "$work"
fi
convect() { "$work/convect" "$@" </dev/null; }

"${as_nobody[@]}" "$work/convect" serve --config "$work/convect.toml" </dev/null >"$work/out" 2>"$work/log" &
daemon_pid=$!
for _ in $(seq 300); do
  grep -q '^ready$' "$work/out" && break
  kill -0 "$daemon_pid" 2>/dev/null || fail "the daemon ended at its start: $(tail -n 3 "$work/log")"
  sleep 0.1
done
token="$(convect token create fuzzer --role admin 2>/dev/null)"

# Two pools with volumes, snapshots, a clone, a schedule and an export each. What is there already is left as it is.
made=0
populate() {
  local pool volume drive
  for pool in tank lake; do
    made=$((made + 1))
    drive="file:$work/$pool-$made"
    convect pool create "$pool" fast "model:ssd-sata:$drive-a?size=128M" \
      slow mirror "model:hdd-7200,seed=2:$drive-b?size=256M" "model:hdd-7200,seed=3:$drive-c?size=256M" \
      --accept-unmirrored || true
    for volume in disk web; do
      convect volume create "$pool/$volume" --size 32M || true
      convect snapshot create "$pool/$volume@monday" || true
      convect snapshot create "$pool/$volume@tuesday" || true
    done
    convect snapshot clone "$pool/disk@monday" copy || true
    convect snapshot schedule set "$pool/web@hourly" --every 1h --keep 3 || true
    convect export create "$pool-disk" "$pool/disk" nbd --listen "unix:$work/$pool.sock" || true
  done
} >/dev/null 2>&1

checks=not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance
checks+=,response_schema_conformance,negative_data_rejection,unsupported_method,allow_header_conformance
checks+=,missing_required_header,use_after_free,ensure_resource_availability
# That nothing is told without a token is a test of the daemon's own (tests/daemon/access.rs); after ten bad ones an
# address is told to wait, which ignored_auth takes for an answer.
# Refusals that no schema can tell, like that of a name that is taken, make positive_data_acceptance of no use here.
run_round() ( # SECONDS SEED CHECKS [ARG...]
  # It keeps what failed in the current folder, and would try that first in every later run.
  cd "$work"
  timeout --kill-after=10 $(($1 + 600)) "$tools/bin/st" --config-file "$work/st.toml" run "$root/docs/api/openapi.json" \
    --url "$server" --tls-verify "$work/state/certificate.pem" -H "Authorization: Bearer $token" --no-color \
    --max-time "$1" --seed "$2" --checks "$3" --continue-on-failure --request-timeout 60 \
    --generation-database none --warnings off "${@:4}" >"$work/round" 2>&1
)
: >"$work/st.toml"

passed=0 failed=0 cases=0

# One round: its result is counted and printed. Returns 1 when it failed.
fuzz_round() { # SECONDS SEED random|known
  local length=$1 seed=$2 words=$3 status here known_checks
  populate
  # On a busy machine the time can be over before the first request is made: then there is more of it.
  for _ in 1 2 3; do
    status=0
    if [ "$words" = random ]; then
      # It would not end without a number of looks, which only the other rounds give.
      run_round "$length" "$seed" "$checks" --exclude-operation-id Live || status=$?
    else
      # A word that is put in another's place may be good where that was bad on purpose, and name another object than the
      # one that was just made.
      known_checks="${checks/negative_data_rejection,/}"
      SCHEMATHESIS_HOOKS="$root/tests/e2e/api_words.py" \
        run_round "$length" "$seed" "${known_checks/,ensure_resource_availability/}" || status=$?
    fi
    here="$(sed -n 's/^ *\([0-9]*\) generated.*/\1/p' "$work/round" | tail -n 1)"
    [ "${here:-0}" = 0 ] && grep -q 'Empty test suite' "$work/round" || break
    length=$((length * 3))
  done
  cases=$((cases + ${here:-0}))
  kill -0 "$daemon_pid" 2>/dev/null || status=99
  if [ "$status" = 0 ] && [ "${here:-0}" -gt 0 ]; then
    passed=$((passed + 1))
    echo "PASS $here requests, $words words, seed $seed"
    return 0
  fi
  failed=$((failed + 1))
  echo "FAIL $words words, seed $seed, exit code $status; what it said:"
  sed -n '/= FAILURES =/,/= SUMMARY =/p; /= ERRORS =/,/= SUMMARY =/p' "$work/round" | head -n 150 | sed 's/^/  | /'
  tail -n 5 "$work/round" | sed 's/^/  | /'
  grep -a -A 5 'panicked' "$work/log" | tail -n 20 | sed 's/^/  | /' || true
  [ "$status" != 99 ] || echo "FAIL the daemon ended: $(tail -n 5 "$work/log")"
  return 1
}

step "fuzz the interface: what failed once, then $seconds s"
began=$SECONDS
while read -r old_seed words _; do
  fuzz_round "$again" "$old_seed" "$words" || true
done < <(sed '/^#/d' "$regressions")
number=0
searched=$SECONDS
# What is left at the end is no round of its own when little can be asked in it.
while left=$((seconds - (SECONDS - searched))) && { [ "$number" = 0 ] || [ "$left" -ge $((round / 2)) ]; }; do
  number=$((number + 1))
  words=random
  [ $((number % 2)) = 1 ] || words=known
  if ! fuzz_round "$((left < round ? left : round))" $((seed + number)) "$words" && [ "$drawn" = yes ]; then
    echo "$((seed + number)) $words  # recorded $(date +%F)" >>"$regressions"
    echo "recorded in $regressions: commit the line with the change that mends it"
  fi
  kill -0 "$daemon_pid" 2>/dev/null || exit 1
done
pid=$daemon_pid daemon_pid=""
kill -TERM "$pid"
wait "$pid" || { echo "FAIL the daemon ended with exit code $?"; failed=$((failed + 1)); }
if grep -aq 'panicked' "$work/log"; then
  echo "FAIL a thread of the daemon panicked"
  failed=$((failed + 1))
fi
changes="$(cat "$work"/state/audit.log* | grep -ac '"outcome":"done"' || true)"
echo "$cases requests in $((SECONDS - began)) s; $changes changes were made"
[ "$changes" -gt 0 ] || { echo "FAIL nothing was changed: the requests reach nothing"; failed=$((failed + 1)); }
echo "interface: $passed passed, $failed failed"
[ "$failed" = 0 ] || exit 1
