#!/usr/bin/env bash
# The unit and integration tests: tests.sh [CARGO-WORD...], the words that choose what is built.
# `cargo test` runs one program after the other, and a program whose last test waits leaves cores idle. Here CONVECT_LANES
# (the number of cores) run side by side, the largest first; what one prints appears when it has ended. All run, even when
# one fails.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
use_rust

logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
cargo test --tests --no-run --message-format=json-render-diagnostics "$@" >"$logs/messages"
# A program of tests has to run in the folder of its package.
mapfile -t programs < <(/usr/bin/env python3 -IS - "$logs/messages" <<'PYTHON'
import json, os, sys
programs = {}
for line in open(sys.argv[1]):
    message = json.loads(line)
    if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
        programs[message["executable"]] = os.path.dirname(message["manifest_path"])
for program in sorted(programs, key=os.path.getsize, reverse=True):
    print(programs[program], program, sep="\t")
PYTHON
)
[ ${#programs[@]} -gt 0 ] || fail "cargo named no program of tests"

run_one() { # LOGS FOLDER PROGRAM
  local name status=0
  name="$(basename "$3")"
  (cd "$2" && CARGO_MANIFEST_DIR="$2" "$3") >"$1/$name.log" 2>&1 || status=$?
  # One program's lines stay together.
  {
    flock 9
    echo "== ${name%-*} in ${2#"$root/"}"
    cat "$1/$name.log"
    [ "$status" = 0 ] || echo "error: $name ended with $status; by itself: (cd $2 && $3)"
  } 9>"$1/lock"
  [ "$status" = 0 ] || : >"$1/$name.failed"
}
export -f run_one
export root
printf '%s\n' "${programs[@]}" |
  xargs -d '\n' -P "${CONVECT_LANES:-$(nproc)}" -I {} bash -c 'IFS=$'"'\t'"' read -r folder program <<<"$2"; run_one "$1" "$folder" "$program"' _ "$logs" {}

failed="$(find "$logs" -name '*.failed' -printf '%f\n' | sed 's/\.failed$//' | sort)"
[ -z "$failed" ] || fail "programs of tests with failures: ${failed//$'\n'/, }"
