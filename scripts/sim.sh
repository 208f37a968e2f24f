#!/usr/bin/env bash
# The simulation (docs/simulation.md): sim.sh [build|gate|quick|campaign|hunt|schedules|forged].
#   build     only the program of the others, and the one whose instructions are counted (scripts/instructions.sh)
#   gate      every known bug has to be found, within CONVECT_GATE_SECONDS (1200) of one core's work each: a bound for
#             what hangs, as what is looked at is counted in seeds
#   quick     the most telling known bugs, the recorded failures, and CONVECT_SIM_SECONDS (60) of crashes, on one core,
#             with the program that the tests are built with: slower, but already there
#   campaign  the recorded failures, then CONVECT_SIM_STATES crash states (1510000) of the first seeds, always the
#             same ones; on a machine so slow that they take over CONVECT_SIM_SECONDS (10800) it fails
#   hunt      crashes of new seeds for CONVECT_SIM_SECONDS (3600), from CONVECT_SIM_SEED on; half of them with a
#             plan that is bent towards one kind of fault; a failure is appended to tests/regressions/seeds.txt
#   schedules CONVECT_SCHEDULES (1000000) schedules of quality of service, from CONVECT_SIM_SEED (1) on
#   forged    CONVECT_FORGED (20000) forged pools, from CONVECT_SIM_SEED (1) on
# Without a word: gate, then campaign. They are one program, built once: the campaign switches no bug on.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
use_rust

regressions=tests/regressions/seeds.txt
program="$(target_dir)/simulation/sim"
threads="$(nproc)"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
passed=0
failed=0

# Memory that a state frees is what the next one allocates: it stays with the allocator, and the kernel need not clear it.
export MIMALLOC_PURGE_DELAY=-1

# run PATTERN WORD...: runs the program, and counts the lines that hold the pattern as passed.
run() {
  local pattern=$1
  shift
  "$program" --threads "$threads" "$@" | tee "$log" || failed=$((failed + 1))
  passed=$((passed + $(grep -cE "$pattern" "$log" || true)))
}

build() {
  if [ "$1" = quick ]; then
    # The words of ./dev check, so that nothing is built for it.
    cargo build --bins --tests --features sim/program
    program="$(target_dir)/debug/sim"
  else
    cargo build --profile simulation -p sim -p convect-bench --features sim/mutations
  fi
}

gate() { # WORD...
  CONVECT_SCHEDULES="${CONVECT_SCHEDULES:-20000}" schedules
  step "known bugs: each has to be found"
  run '^[a-z-]+ +[0-9]+ ' --gate --seconds "${CONVECT_GATE_SECONDS:-1200}" "$@"
}

replay() {
  step "recorded failures"
  run '^regression .*: [0-9]+ states$' --regressions "$regressions"
}

crashes() { # WORD...
  run '^seed [0-9]+: [0-9]+ states' --states 9000 --cuts 3 --record "$regressions" "$@"
}

campaign() {
  local wanted="${CONVECT_SIM_STATES:-1510000}" found
  replay
  step "crashes at writes and flushes: $wanted states"
  crashes --seed 1 --seeds 100000 --states-in-all "$wanted" --seconds "${CONVECT_SIM_SECONDS:-10800}"
  found="$(sed -n 's/^[0-9]* seeds, \([0-9]*\) crash states.*/\1/p' "$log")"
  [ "${found:-0}" -ge "$wanted" ] || {
    echo "only ${found:-0} of $wanted crash states were examined"
    failed=$((failed + 1))
  }
}

quick() {
  CONVECT_SCHEDULES="${CONVECT_SCHEDULES:-3000}" gate --quick
  replay
  # These take as long on any number of cores: other steps have the others.
  threads=1
  step "crashes at writes and flushes: ${CONVECT_SIM_SECONDS:-60} s"
  crashes --seed 1 --seeds 100000 --seconds "${CONVECT_SIM_SECONDS:-60}"
}

hunt() {
  local seconds="${CONVECT_SIM_SECONDS:-3600}" seed="${CONVECT_SIM_SEED:-$(($(date +%s) * 1000))}"
  step "new seeds from $seed on: $((seconds / 2)) s"
  crashes --seed "$seed" --seeds 100000000 --seconds "$((seconds / 2))"
  step "the same, each bent towards one kind of fault: $((seconds - seconds / 2)) s"
  crashes --seed "$seed" --seeds 100000000 --seconds "$((seconds - seconds / 2))" --focus-each
}

schedules() {
  local count="${CONVECT_SCHEDULES:-1000000}"
  step "schedules of quality of service: $count"
  run '^Tally ' --schedules "$count" --seed "${CONVECT_SIM_SEED:-1}"
}

forged() {
  local pools="${CONVECT_FORGED:-20000}"
  step "forged pools: $pools"
  # Their memory is one of the limits, and what the allocator keeps of pool after pool would count.
  MIMALLOC_PURGE_DELAY=0 run '^Tally ' --forged "$pools" --seed "${CONVECT_SIM_SEED:-1}"
}

case "${1:-}" in
  build | gate | quick | campaign | hunt | schedules | forged | "") ;;
  *) fail "usage: sim.sh [build|gate|quick|campaign|hunt|schedules|forged]" ;;
esac
step "build"
build "${1:-gate}"
[ "${1:-}" != build ] || exit 0
if [ $# = 0 ]; then
  gate
  campaign
else
  "$1"
fi
echo "simulation: $passed passed, $failed failed"
[ "$failed" = 0 ]
