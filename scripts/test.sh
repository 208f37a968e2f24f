#!/usr/bin/env bash
# Every check and test, in the order in which failures are cheapest to find.
# All steps run even when one fails, so that one run tells everything; the exit code says if any did.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

end_to_end=yes
fuzz=yes
simulate=yes
web=yes
for argument in "$@"; do
  case "$argument" in
    --no-e2e) end_to_end=no ;;
    --no-fuzz) fuzz=no ;;
    --no-sim) simulate=no ;;
    --no-web) web=no ;;
    *) fail "test knows only --no-e2e, --no-fuzz, --no-sim and --no-web, not '$argument'" ;;
  esac
done

logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
failed=()
passed_count=0
failed_count=0

# Runs one step, streaming what it prints, and notes whether it failed.
check() { # NAME COMMAND...
  local name=$1 started=$SECONDS status=0
  shift
  step "$name"
  "$@" 2>&1 | tee "$logs/step" || status=$?
  if [ "$status" = 0 ]; then
    echo "-- $name: ok, $((SECONDS - started)) s"
    return 0
  fi
  echo "-- $name: FAILED with exit code $status after $((SECONDS - started)) s"
  failed+=("$name")
}

# Adds up the closing lines of a step: `passed;`/`failed;` of cargo's runner, or our own runner's.
count_results() {
  local passed_here failed_here
  read -r passed_here failed_here < <(
    sed -nE -e 's/^test result: [A-Za-z]+\. ([0-9]+) passed; ([0-9]+) failed.*/\1 \2/p' \
      -e 's/^(end to end|fuzz|interface|simulation|instructions|web): ([0-9]+) passed, ([0-9]+) failed$/\2 \3/p' "$logs/step" |
      awk '{p += $1; f += $2} END {print p + 0, f + 0}'
  )
  passed_count=$((passed_count + passed_here))
  failed_count=$((failed_count + failed_here))
}

bash scripts/setup.sh test
use_rust
check "format" cargo fmt --all --check
check "clippy" cargo clippy --workspace --all-targets -- -D warnings
# Programs and tests at once: built apart they would differ in features, and much would be built twice.
check "build" cargo build --workspace --bins --tests
check "unit and integration tests" cargo test --workspace --no-fail-fast
count_results
# What is copied while somebody changes it depends on what the compiler makes of it: it is tested as it ships.
check "checksums, optimised" cargo test --release -p convect-checksum
count_results
check "instructions of the key cases" bash scripts/instructions.sh
count_results
if [ "$web" = yes ]; then
  check "web page" bash scripts/web.sh test
  count_results
fi
if [ "$end_to_end" = yes ]; then
  check "end to end" bash scripts/e2e.sh
  count_results
fi
# Each target has CONVECT_FUZZ_SECONDS (60), as many side by side as there are cores; the interface CONVECT_API_FUZZ_SECONDS (120).
if [ "$fuzz" = yes ]; then
  check "fuzzing" bash scripts/fuzz.sh
  count_results
  check "fuzzing the interface" bash scripts/fuzz-api.sh
  count_results
fi

if [ "$simulate" = yes ]; then
  check "simulation" bash scripts/sim.sh
  count_results
fi

step "summary after $SECONDS s"
# A step that broke before its tests could be counted is a failure that has to show in the line.
[ ${#failed[@]} = 0 ] || [ "$failed_count" -gt 0 ] || failed_count=${#failed[@]}
for name in ${failed[@]+"${failed[@]}"}; do
  echo "failed: $name"
done
echo "$passed_count passed, $failed_count failed"
[ ${#failed[@]} = 0 ] && [ "$failed_count" = 0 ] || exit 1
