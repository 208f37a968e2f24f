#!/usr/bin/env bash
# Runs tests/e2e/NAME.sh, each in a folder of its own and with a time limit (a line
# `# timeout: SECONDS` in the script), against the binaries that are built already.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

CONVECT_BIN="${CONVECT_BIN:-$(target_dir)/debug}"
export CONVECT_BIN CONVECT_ROOT="$root"
for binary in convect convect-lab; do
  [ -x "$CONVECT_BIN/$binary" ] || fail "$CONVECT_BIN/$binary is not built; run ./dev e2e"
done

if [ $# -gt 0 ]; then
  names=("$@")
else
  names=()
  for script in "$root"/tests/e2e/*.sh; do
    name="$(basename "$script" .sh)"
    [ "$name" = lib ] || names+=("$name")
  done
fi

work="$(mktemp -d)"
trap 'rm -rf --one-file-system "$work"' EXIT
passed=0
failed_names=()

run_one() {
  local name=$1 script="$root/tests/e2e/$1.sh" limit started=$SECONDS status=0
  [ -f "$script" ] || fail "tests/e2e/$name.sh does not exist"
  limit="$(sed -n 's/^# timeout: *\([0-9]*\).*/\1/p' "$script" | head -n 1)"
  mkdir "$work/$name"
  # TERM first: the script's own trap then stops its daemon and lets go of its mounts.
  (cd "$work/$name" && timeout --kill-after=30 "${limit:-120}" bash "$script" \
    </dev/null >"$work/$name.log" 2>&1) || status=$?
  if [ "$status" = 0 ]; then
    echo "PASS $name ($((SECONDS - started)) s)"
    passed=$((passed + 1))
    return 0
  fi
  failed_names+=("$name")
  if [ "$status" = 124 ] || [ "$status" = 137 ]; then
    echo "FAIL $name: not done after ${limit:-120} s; the end of its log:"
  else
    echo "FAIL $name: exit code $status after $((SECONDS - started)) s; the end of its log:"
  fi
  tail -n 60 "$work/$name.log" | sed 's/^/  | /'
}

for name in "${names[@]}"; do
  run_one "$name"
done
echo "end to end: $passed passed, ${#failed_names[@]} failed"
[ ${#failed_names[@]} = 0 ] || exit 1
