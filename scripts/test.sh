#!/usr/bin/env bash
# Everything that decides whether a change may land: test.sh [--no-e2e] [--no-fuzz] [--no-sim] [--no-web].
# All steps run even when one fails (but for those that need its outcome), so that one run tells everything; the
# exit code says if any did.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/steps.sh
. "$root/scripts/steps.sh"
cd "$root"

end_to_end=yes fuzz=yes simulate=yes web=yes
for argument in "$@"; do
  case "$argument" in
    --no-e2e) end_to_end=no ;;
    --no-fuzz) fuzz=no ;;
    --no-sim) simulate=no ;;
    --no-web) web=no ;;
    *) fail "test knows only --no-e2e, --no-fuzz, --no-sim and --no-web, not '$argument'" ;;
  esac
done

bash scripts/setup.sh test
use_rust
# Each known bug, fuzz target and round of the interface has little time here; ./dev campaign has more.
export CONVECT_FUZZ_SECONDS="${CONVECT_FUZZ_SECONDS:-3}" CONVECT_API_FUZZ_SECONDS="${CONVECT_API_FUZZ_SECONDS:-45}"

# Names, seconds of the processor that each may take in an empty clone, what has to pass before. What is first in the
# list starts first: what others wait for, then what waits itself.
add_step "format" 5 - cargo fmt --all --check
# Programs and tests at once: built apart they would differ in features, and much would be built twice.
add_urgent_step "build" 600 - cargo build --locked --workspace --bins --tests
add_urgent_step "optimised build" 290 - bash scripts/sim.sh build
[ "$end_to_end" = no ] || add_urgent_step "end to end" 670 "build" bash scripts/e2e.sh
add_step "unit and integration tests" 290 "build" bash scripts/tests.sh --workspace
if [ "$simulate" = yes ]; then
  add_step "mutation gate" 330 "optimised build" bash scripts/sim.sh gate
  add_step "crash campaign" 700 "optimised build" bash scripts/sim.sh campaign
fi
[ "$web" = no ] || add_urgent_step "web page" 160 "build" bash scripts/web.sh test
add_step "clippy" 210 "build" cargo clippy --workspace --all-targets --features sim/program -- -D warnings
add_step "instructions of the key cases" 30 "optimised build" bash scripts/instructions.sh
# What is copied while somebody changes it depends on what the compiler makes of it: it is tested as it ships. So are the
# known bugs, which are not in what ships.
add_step "checksums, as released" 20 - cargo test --release --lib -p convect-checksum -p convect-units
if [ "$fuzz" = yes ]; then
  add_step "fuzzing" 180 - bash scripts/fuzz.sh
  add_step "fuzzing the interface" 60 "build" bash scripts/fuzz-api.sh
fi
step_target=1500
# One lane more than two cores have: end-to-end tests mostly wait.
run_steps 3 || exit 1
