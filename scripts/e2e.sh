#!/usr/bin/env bash
# Runs tests/e2e/NAME.sh, each in a folder of its own and with a time limit (a line
# `# timeout: SECONDS` in the script, enough on an idle machine; it ends one that hangs after four times that), against
# the binaries that are built already. As many run side by
# side as there are cores (CONVECT_E2E_LANES), those with the longest limits first: most of their time
# is waiting.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

CONVECT_BIN="${CONVECT_BIN:-$(target_dir)/debug}"
export CONVECT_BIN CONVECT_ROOT="$root"
if [ $# -gt 0 ]; then
  names=("$@")
else
  names=()
  for script in "$root"/tests/e2e/*.sh; do
    name="$(basename "$script" .sh)"
    [ "$name" = lib ] || names+=("$name")
  done
fi

lanes="${CONVECT_E2E_LANES:-$(nproc)}"
case "$lanes" in '' | *[!0-9]* | 0) fail "CONVECT_E2E_LANES is a number from 1 on, not '$lanes'" ;; esac
binaries=(convect)
for name in "${names[@]}"; do
  [ -f "$root/tests/e2e/$name.sh" ] || fail "tests/e2e/$name.sh does not exist"
  # The laboratory is no part of what ./dev check builds.
  if grep -qwE 'lab|convect-lab' "$root/tests/e2e/$name.sh"; then binaries=(convect convect-lab); fi
done
for binary in "${binaries[@]}"; do
  [ -x "$CONVECT_BIN/$binary" ] || fail "$CONVECT_BIN/$binary is not built; run ./dev e2e"
done

work="$(mktemp -d)"
# Interrupted, what still runs is told so and tidies up.
finish() {
  local jobs
  jobs="$(jobs -p)"
  # shellcheck disable=SC2086  # numbers
  [ -z "$jobs" ] || kill $jobs 2>/dev/null || true
  wait
  rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

limit_of() {
  local limit
  limit="$(sed -n 's/^# timeout: *\([0-9]*\).*/\1/p' "$root/tests/e2e/$1.sh" | head -n 1)"
  echo $((4 * ${limit:-120}))
}

# Seconds of the processor that a test took: bash writes those of the shell in the first line, of its children in the
# second.
processor_seconds() { # NAME
  awk 'NR == 2 {for (i = 1; i <= NF; i++) {split($i, part, /[ms]/); s += 60 * part[1] + part[2]}; printf "%.0f", s}' \
    "$work/$1.times"
}

# Runs one and prints how it ended; a file NAME.passed says that it passed.
run_one() {
  local name=$1 limit child started=$SECONDS status=0
  trap - EXIT INT
  limit="$(limit_of "$name")"
  mkdir "$work/$name"
  # TERM first: the script's own trap then stops its daemon and lets go of its mounts.
  (cd "$work/$name" && exec timeout --kill-after=30 "$limit" bash "$root/tests/e2e/$name.sh" \
    </dev/null >"$work/$name.log" 2>&1) &
  child=$!
  # shellcheck disable=SC2064  # this child
  trap "kill $child 2>/dev/null; wait $child; exit 143" TERM
  wait "$child" || status=$?
  if [ "$status" = 0 ]; then
    times >"$work/$name.times"
    echo "PASS $name ($((SECONDS - started)) s, $(processor_seconds "$name") s of the processor)"
    : >"$work/$name.passed"
    return 0
  fi
  {
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then
      echo "FAIL $name: not done after $limit s"
    else
      echo "FAIL $name: exit code $status after $((SECONDS - started)) s"
    fi
    # What failed, first: a reader may have only the beginning of this.
    grep '^FAILED' "$work/$name.log" | tail -n 3 || true
    echo "the end of its log:"
    tail -n 60 "$work/$name.log" | sed 's/^/  | /'
  } >"$work/$name.end"
  cat "$work/$name.end"
}

mapfile -t names < <(for name in "${names[@]}"; do echo "$(limit_of "$name") $name"; done | sort -k1,1nr -k2 | cut -d' ' -f2)
running=0
for name in "${names[@]}"; do
  if [ "$running" -ge "$lanes" ]; then
    wait -n
    running=$((running - 1))
  fi
  run_one "$name" &
  running=$((running + 1))
done
wait
passed="$(find "$work" -maxdepth 1 -name '*.passed' | wc -l)"
failed=$((${#names[@]} - passed))
echo "end to end: $passed passed, $failed failed"
[ "$failed" = 0 ] || exit 1
