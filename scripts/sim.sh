#!/usr/bin/env bash
# The simulation: the gate of known bugs (CONVECT_GATE_SECONDS of one core's work each at most, 30;
# as many at a time as there are cores), then a campaign on all cores over the first CONVECT_SIM_SEEDS
# seeds (1700), always the same ones, with CONVECT_SIM_STATES crashes each (9000), three for each that a plan has at a
# moment, of which no further one is begun after CONVECT_SIM_SECONDS (600).
# Both are the same program: the campaign switches no bug on.
# Every number is printed.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
use_rust

seeds="${CONVECT_SIM_SEEDS:-1700}"
states="${CONVECT_SIM_STATES:-9000}"
seconds="${CONVECT_SIM_SECONDS:-600}"
gate_seconds="${CONVECT_GATE_SECONDS:-30}"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
passed=0
failed=0

# Memory that a state gives back the next one takes: from the allocator, and not by way of the kernel, which clears it.
export MIMALLOC_PURGE_DELAY=-1

short_run() { # PROGRAMS
  "$1/sim" --seed 1 --seeds 40 --states 1200 --cuts 3 --threads "$(nproc)" >/dev/null
}

# Builds the program: with the profile of a short run of itself, by which it does about a fifth more states a second, where
# rustup's llvm-tools are there (./dev setup test). Sets `program`.
build() {
  local programs
  if [ ! -x "$(llvm_profdata)" ]; then
    echo "without a profile of itself, since llvm-tools are not there: rustup component add llvm-tools"
    cargo build --release -p sim --features mutations
    program="$(target_dir)/release/sim"
    return
  fi
  profiled_build sim short_run --features mutations
  program="$programs/sim"
}

step "build"
build

step "the gate: each known bug has to be found"
"$program" --gate --seconds "$gate_seconds" --threads "$(nproc)" | tee "$log" || failed=$((failed + 1))
passed=$((passed + $(grep -cE '^[a-z-]+ +[0-9]+ ' "$log" || true)))

step "the campaign: crashes at every write and flush, $seeds seeds"
"$program" --seed 1 --seeds "$seeds" --states "$states" --cuts 3 --seconds "$seconds" --threads "$(nproc)" \
  | tee "$log" || failed=$((failed + 1))
passed=$((passed + $(grep -c '^seed [0-9]*: [0-9]* states' "$log" || true)))
echo "simulation: $passed passed, $failed failed"
[ "$failed" = 0 ]
