#!/usr/bin/env bash
# What one runs before each commit: check.sh. Formatting, clippy, the tests of the product's crates, the page's unit
# tests, the most telling known bugs and a minute of simulation, and five end-to-end tests. Incremental.
# The tools that are not part of the product (laboratory, rival policies, traces, benchmarks) are built and tested by
# ./dev test alone.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/steps.sh
. "$root/scripts/steps.sh"
cd "$root"

[ $# = 0 ] || fail "check takes no arguments"
bash scripts/setup.sh test
use_rust

# Tests that try at random have fewer rounds here than in ./dev test, and what passed and has not changed does not run again.
export CONVECT_BRIEF=1 CONVECT_SKIP_PASSED=1
# Many tests wait for drives and timeouts: twice as many as cores side by side.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}"

# Names, seconds of the processor that each may take from an empty target folder, what has to pass before.
add_step "format" 10 - cargo fmt --all --check
add_urgent_step "build" 500 - cargo build --locked --bins --tests --features sim/program
add_step "unit and integration tests" 290 "build" bash scripts/tests.sh --features sim/program
add_step "simulation" 220 "build" bash scripts/sim.sh quick
add_step "clippy" 170 "build" cargo clippy --all-targets --features sim/program -- -D warnings
add_step "web page" 60 - bash scripts/web.sh unit
add_step "end to end, five of them" 60 "build" bash scripts/e2e.sh filesystems interop quota differences targets
step_target=600
# One lane more than two cores have: end-to-end tests mostly wait.
run_steps 3 || exit 1
