#!/usr/bin/env bash
# The boot storm, in small: 20 desktops for a few seconds. All phases come, every tenant is served in each, nothing fails,
# and the report is written, also when somebody ends it early. Then the promises that take no disks, in small. No figures
# are asserted.
# timeout: 180
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

small=(--desktops 20 --image 64M --database 64M --mail 32M --archive 64M --fast 768M --boot 2M)

say "all phases, without and with policies"
TMPDIR="$work" lab storm "${small[@]}" --seconds 4 --report storm.html --json storm.json | tee said
[ "$(field '[phase["phase"] for phase in d["phases"]]' <storm.json)" = "['alone', 'without', 'with']" ] ||
  fail "$(field '[phase["phase"] for phase in d["phases"]]' <storm.json)"
served='all(tenant["iops"] > 0 for phase in d["phases"] for tenant in phase["tenants"])'
[ "$(field "$served" <storm.json)" = True ] || fail "somebody was not served: $(cat said)"
[ "$(field '[len(phase["tenants"]) for phase in d["phases"]]' <storm.json)" = "[1, 4, 4]" ] || fail "$(cat said)"
[ "$(field 'd["phases"][2]["daemon_windows"] is not None' <storm.json)" = True ] || fail "the daemon counted nothing"
grep -q 'Storm with policies' storm.html || fail "the report lacks a phase"
grep -q 'report: storm.html' said || fail "$(cat said)"

say "what there is when it is ended early is reported"
TMPDIR="$work" "$CONVECT_BIN/convect-lab" --convect "$CONVECT_BIN/convect" storm "${small[@]}" --seconds 600 \
  --report early.html >early 2>&1 </dev/null &
storm=$!
defer "kill '$storm' 2>/dev/null"
wait_until 60 grep -q '^  alone ' early
kill -INT "$storm"
status=0
wait "$storm" || status=$?
[ "$status" = 130 ] || fail "it ended with $status: $(cat early)"
grep -q 'Alone' early.html || fail "no report: $(cat early)"
[ -z "$(compgen -G "$work/convect-storm-*")" ] || fail "its folder is left"

say "promises, each with its table and its verdicts"
promise() { # promise VERDICTS NAME ARGUMENT...
  local verdicts=$1
  shift
  TMPDIR="$work" lab promises "$@" >promise 2>&1 || fail "$*: $(cat promise)"
  [ "$(grep -cE '^  (met:   |MISSED:|not told:) ' promise)" = "$verdicts" ] || fail "$*: $(cat promise)"
}
promise 3 infeasible --seconds 2 --volume 16M
promise 1 alone --seconds 1 --rounds 1 --volume 16M
promise 1 fairness --seconds 1 --rounds 1 --volume 16M
promise 2 live --seconds 3 --volume 16M
promise 2 many --volumes 20 --rounds 1 --seconds 1

say "what cannot be is refused with a word"
if lab storm --image 1M --report none.html >refused 2>&1; then fail "a small image was taken"; fi
grep -q 'too small' refused || fail "$(cat refused)"
say "passed"
