#!/usr/bin/env bash
# Jobs over kill -9: each kind is killed in the middle. It keeps its number, and goes on until it is done, or is listed as
# failed with the reason; none is lost from the list.
# timeout: 420
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

mib=$((1 << 20))
of_kind() { # KIND EXPRESSION of a job `j`: of the newest one of that kind
  convect job list --json | field "[$2 for j in d['items'] if j['kind'] == '$1'][0]"
}
is_running() { [ "$(of_kind "$1" 'j["state"]')" = running ]; }
is_done() { [ "$(of_kind "$1" 'j["state"]')" = done ]; }
newest() { convect job list --json | field 'max([0] + [j["id"] for j in d["items"]])'; }
count() { convect job list --json | field 'len(d["items"])'; }
numbers() { convect job list --json | field '[j["id"] for j in d["items"]]'; }
# Kills the daemon and starts it again, with a command in between and one right before. What was listed is listed.
kill_and_start() { # [COMMAND [COMMAND_BEFORE]]
  local before after
  before="$(convect job list --json | field '{(j["id"], j["kind"], j["subject"]) for j in d["items"]}')"
  eval "${2:-}"
  kill_daemon
  eval "${1:-}"
  start_daemon
  after="$(convect job list --json | field '{(j["id"], j["kind"], j["subject"]) for j in d["items"]}')"
  python3 -c 'import sys
before, after = eval(sys.argv[1]), eval(sys.argv[2])
assert before <= after, before - after' "$before" "$after" || fail "jobs are lost"
}
is_paused() { [ "$(of_kind "$1" 'j["state"]')" = paused ]; }
# A job that has just begun is paused, and does nothing more, over kill -9 neither. Nothing is asked for between its start
# and this: on a busy machine it might end meanwhile, and what has ended cannot be paused.
rests() { # KIND ID
  local done
  sleep 0.3
  convect job pause "$2" | grep -qx "job $2 paused; resume it with .convect job resume $2." || fail "it is not paused: $(convect job list)"
  sleep 0.5
  [ "$(of_kind "$1" 'j["id"]')" = "$2" ] || fail "job $2 is no $1: $(convect job list)"
  done="$(of_kind "$1" 'j["done"]')"
  is_paused "$1" || fail "$1 is not paused: $(convect job list)"
  kill_and_start
  sleep 1
  is_paused "$1" || fail "$1 is not paused any more: $(convect job list)"
  [ "$(of_kind "$1" 'j["id"]')" = "$2" ] || fail "$1 has another number: $(convect job list)"
  # What was under way when it was paused may have ended later.
  [ "$(of_kind "$1" 'j["done"]')" -le $((done + 2 * mib)) ] || fail "$1 continues while it is paused: $(convect job list)"
  convect job show "$2" | grep -q "paused: resume it with .convect job resume $2." || fail "$(convect job show "$2")"
}
# A paused job of a kind is resumed, is killed with the daemon, and continues under its number until it is done.
goes_on() { # KIND
  local id
  id="$(of_kind "$1" 'j["id"]')"
  kill_and_start "" "convect job resume $id; sleep 0.3"
  [ "$(of_kind "$1" 'j["id"]')" = "$id" ] || fail "$1 has another number: $(convect job list)"
  wait_until 90 is_done "$1"
  [ "$(of_kind "$1" 'j["id"]')" = "$id" ] || fail "$1 has another number in the end: $(convect job list)"
}
fill() { # EXPORT FROM TO
  nbd_of "$1" "
import content, random
seed = random.random()
for at in range($2, $3):
    $1.pwrite(content.mib(seed, at), at * $mib)
$1.flush()
"
}

start_daemon
drive() { echo "model:hdd-7200,iops=$2:file:$work/$1.img"; }
slow() { echo "$(drive "$1" "$2")?size=1G"; }
convect pool create tank slow concat "file:$work/a.img?size=1G"
convect volume create tank/v --size 512M
export_nbd v tank/v
fill v 0 96

say "scrub"
next=$(($(newest) + 1))
convect pool scrub tank --rate 8M
rests scrub "$next"
goes_on scrub

say "evacuation of a vdrive"
convect pool add tank slow concat "file:$work/b.img?size=1G"
fill v 96 192
convect pool add tank slow concat "$(slow c 1000)"
fill v 192 256
next=$(($(newest) + 1))
convect pool remove tank 3 --yes --background
rests evacuate "$next"
goes_on evacuate
convect vdrive list tank --json | field '[v["id"] for v in d["items"]]' | grep -qx '\[1, 2\]' || fail "$(convect vdrive list tank)"

say "bringing a mirror's leg up to date"
convect pool create twin slow mirror "file:$work/d.img?size=1G" "$(slow e 60)"
convect volume create twin/w --size 512M
export_nbd w twin/w
convect pool offline twin "$(drive e 60)"
fill w 0 128
next=$(($(newest) + 1))
convect pool online twin "$(drive e 60)" --yes --background
rests resync "$next"
goes_on resync
convect pool status twin --json | field '{drive["state"] for v in d["vdrives"] for drive in v["drives"]}' | grep -qx "{'online'}" ||
  fail "$(convect pool status twin)"

say "what deleted snapshots leave, and a deleted volume"
for at in 1 2 3 4; do
  convect snapshot create "tank/v@s$at"
  fill v 0 48
done
for at in 1 2 3 4; do convect snapshot delete "tank/v@s$at" --yes; done
has_reclaim() { of_kind reclaim 'j["id"]'; }
wait_until 10 has_reclaim
id="$(of_kind reclaim 'j["id"]')"
kill_and_start
wait_until 90 is_done reclaim
convect job show "$id" >/dev/null || fail "it is lost"
convect export delete v --yes
convect volume delete tank/v --yes --background
id="$(of_kind delete 'j["id"]')"
kill_and_start
wait_until 90 is_done delete
[ "$(of_kind delete 'j["id"]')" = "$id" ] || fail "deleting has another number"
convect volume list tank --json | field 'len(d["items"])' | grep -qx 0 || fail "the volume is there"

say "sending and receiving end with the daemon, say so, and go on by their token"
convect snapshot create twin/w@s
convect send twin/w@s >whole.stream
[ "$(of_kind send 'j["state"]')" = 'done' ] || fail "$(convect job list)"
mkfifo slow.pipe
"$CONVECT_BIN/convect" send twin/w@s </dev/null >slow.pipe 2>send.err &
send_pid=$!
exec 9<slow.pipe
head -c 4M <&9 >/dev/null
is_running send || fail "nothing is sent: $(convect job list)"
if convect job pause "$(of_kind send 'j["id"]')" 2>refused; then fail "what lives as long as a connection is paused"; fi
grep -q '(send) cannot be paused, as it ends with its connection: cancel it' refused || fail "$(cat refused)"
mkfifo half.pipe
"$CONVECT_BIN/convect" receive tank/back <half.pipe 9<&- >receive.out 2>receive.err &
receive_pid=$!
exec 8>half.pipe
head -c 80M whole.stream >&8
far() { [ "$(of_kind receive 'j["done"]')" -gt $((60 * mib)) ]; }
wait_until 30 far
is_running receive || fail "nothing is received: $(convect job list)"
# Whoever has the pipe open to read keeps the sender.
kill_and_start 'exec 9<&- 8>&-'
wait "$send_pid" && fail "what was not sent whole is taken for whole"
wait "$receive_pid" && fail "what was not received whole is taken for whole"
for kind in send receive; do
  [ "$(of_kind $kind 'j["state"]')" = failed ] || fail "$kind: $(convect job list)"
  of_kind $kind 'j["message"]' | grep -q 'the daemon stopped while it ran' || fail "$(convect job list)"
done
noted() { convect event list --code job_failed --json | field 'len(d["items"])'; }
told_both() { [ "$(noted)" = 2 ]; }
wait_until 20 told_both
token="$(convect receive --status tank/back --json | field 'd["token"]')"
"$CONVECT_BIN/convect" send twin/w@s --resume "$token" </dev/null 2>/dev/null | "$CONVECT_BIN/convect" receive tank/back 2>/dev/null
[ "$(of_kind receive 'j["state"]')" = 'done' ] || fail "$(convect job list)"

say "jobs are cancelled, and that is kept"
"$CONVECT_BIN/convect" send twin/w@s </dev/null >slow.pipe 2>send.err &
send_pid=$!
exec 9<slow.pipe
head -c 4M <&9 >/dev/null
convect job cancel "$(of_kind send 'j["id"]')"
cat <&9 >/dev/null
exec 9<&-
wait "$send_pid" && fail "a cancelled stream is taken for whole"
grep -q 'cancelled' send.err || fail "$(cat send.err)"
convect pool scrub twin --rate 1M
convect job cancel "$(of_kind scrub 'j["id"]')"
is_cancelled() { [ "$(of_kind "$1" 'j["state"]')" = cancelled ]; }
wait_until 20 is_cancelled scrub
is_cancelled send || fail "$(convect job list)"
before="$(numbers)"
kill_and_start
[ "$(numbers)" = "$before" ] || fail "$(numbers) is not $before"
is_cancelled scrub || fail "$(convect job list)"
if convect job cancel "$(of_kind scrub 'j["id"]')" 2>refused; then fail "it is cancelled twice"; fi
grep -q 'has already finished: cancelled' refused || fail "$(cat refused)"
convect pool scrub twin --rate 1M
id="$(of_kind scrub 'j["id"]')"
convect job pause "$id"
convect job cancel "$id"
wait_until 20 is_cancelled scrub
if convect job resume "$id" 2>refused; then fail "what was cancelled goes on"; fi
grep -q 'has already finished: cancelled' refused || fail "$(cat refused)"

say "a job whose pool is not there waits for it"
convect pool scrub twin --rate 1M
id="$(of_kind scrub 'j["id"]')"
kill_daemon
mv d.img away-d.img
mv e.img away-e.img
start_daemon
convect job show "$id" | grep -q 'pool twin is not open: the job continues once it is imported' || fail "$(convect job show "$id")"
mv away-d.img d.img
mv away-e.img e.img
convect pool import twin --drive "file:$work/d.img" "$(drive e 60)"
[ "$(of_kind scrub 'j["id"]')" = "$id" ] || fail "it has another number: $(convect job list)"
is_running scrub || fail "$(convect job list)"
[ "$(count)" -ge 10 ] || fail "$(convect job list)"
