#!/usr/bin/env bash
# The search for new bugs: campaign.sh [--hours N] (1). Once: known bugs, the conformance suites in all
# their variants, kills, host faults, guests, damage and bit rot, the profiled build. Then, until the time is over, in turn:
# crashes of new seeds, fuzzing of every target, fuzzing of the interface. What fails is written into the regression
# corpus (tests/regressions, fuzz/regressions), which ./dev check and ./dev test repeat: commit it with the fix.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

hours=1
while [ $# -gt 0 ]; do
  case "$1" in
    --hours)
      [ $# -ge 2 ] || fail "--hours needs a number"
      hours=$2
      shift
      ;;
    *) fail "campaign knows --hours N, not '$1'" ;;
  esac
  shift
done
[[ "$hours" =~ ^[0-9]+(\.[0-9]+)?$ ]] || fail "hours are a number such as 8 or 0.5, not '$hours'"
limit="$(awk -v hours="$hours" 'BEGIN {printf "%d", hours * 3600}')"
[ "$limit" -ge 60 ] || fail "a campaign has at least a minute: --hours 0.02"

bash scripts/setup.sh test
bash scripts/setup.sh profile
use_rust
table="$(mktemp)"
trap 'rm -f "$table"' EXIT
bad=0

# Runs one part and notes how it ended; the search continues after a failure.
part() { # NAME COMMAND...
  local name=$1 began=$SECONDS status=0
  shift
  step "$name"
  "$@" </dev/null || status=$?
  [ "$status" = 0 ] || bad=$((bad + 1))
  printf '%-44s %8s  %s\n' "$name" "$((SECONDS - began))" "$([ "$status" = 0 ] && echo passed || echo "FAILED ($status)")" |
    tee -a "$table"
}
left() { echo $((limit - SECONDS)); }
# The smaller of a number and what is left of the time.
at_most() { local left; left="$(left)"; echo $((left < $1 ? (left > 1 ? left : 1) : $1)); }

part "build" cargo build --workspace --bins --tests
part "build, simulator" bash scripts/sim.sh build
# The parts that run once, the longest last; what there is no time for is named.
once=(
  "end-to-end tests, in all variants|CONVECT_LONG=1 bash scripts/e2e.sh"
  "damaged pools, repaired|bash dev bench damage"
  "bit rot|bash dev bench bitrot"
  "recovery of full journals|bash dev bench recovery"
  "kills of the daemon|bash dev bench torture --kills 200"
  "known bugs|bash scripts/sim.sh gate"
  "forged pools|bash scripts/sim.sh forged"
  "schedules of quality of service|bash scripts/sim.sh schedules"
  "drives that were put back, cut or exchanged|CONVECT_EVIDENCE=2000 cargo test -p convect-inspect --test inspect no_combination"
  "hostile peers, a minute each|bash dev bench hostile --seconds 60 --judge-latency"
  "profiled build|bash dev build --profiled"
)
for row in "${once[@]}"; do
  if [ "$(left)" -gt 0 ]; then
    part "${row%%|*}" bash -c "${row#*|}"
  else
    printf '%-44s %8s  %s\n' "${row%%|*}" - "not run: no time left" | tee -a "$table"
  fi
done
round=0
while [ "$round" = 0 ] || [ "$(left)" -gt 60 ]; do
  round=$((round + 1))
  part "crashes of new seeds, round $round" env CONVECT_SIM_SECONDS="$(at_most 1800)" bash scripts/sim.sh hunt
  part "fuzzing, round $round" bash scripts/fuzz.sh --seconds "$(at_most 60)"
  part "fuzzing of the interface, round $round" bash scripts/fuzz-api.sh --seconds "$(at_most 300)" --seed random
  seed="$((RANDOM << 15 | RANDOM))"
  part "vhost-user messages and rings, round $round" env CONVECT_RANDOM_SEED="$seed" CONVECT_RANDOM_ROUNDS=20000 \
    cargo test -q -p convect-vhost-user-blk --test front_end -- --nocapture random::
  part "NBD messages, round $round" env CONVECT_NBD_SEED="$seed" CONVECT_NBD_MESSAGES=2000000 \
    cargo test -q -p convect-nbd --test it -- --nocapture random::
  part "iSCSI messages, round $round" env CONVECT_RANDOM_SEED="$seed" CONVECT_RANDOM_ROUNDS=2000 \
    cargo test -q -p convect-iscsi --test it -- --nocapture random::
done

step "summary after $SECONDS s of $limit"
cat "$table"
new="$(git status --porcelain --untracked-files=all tests/regressions fuzz/regressions 2>/dev/null || true)"
[ -z "$new" ] || printf 'new in the regression corpus, to be committed with the fix:\n%s\n' "$new"
echo "campaign: $(grep -c 'passed$' "$table" || true) passed, $bad failed"
[ "$bad" = 0 ]
