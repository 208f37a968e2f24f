#!/usr/bin/env bash
# The unit and integration tests: tests.sh [CARGO-WORD...], the words that choose what is built.
# `cargo test` runs one program after the other, and a program whose last test waits leaves cores idle. Here CONVECT_LANES
# (the number of cores) run side by side, the largest first; what one prints appears when it has ended. All run, even when
# one fails. With CONVECT_SKIP_PASSED a program is left out that has passed since it was linked, as long as nothing else
# that a test reads has changed: its package's programs, and each committed file that is not Rust.
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

# Where it is noted of which state of a program and of what it reads it is known that it passes.
passed="$(target_dir)/passed"
read_besides=""
if [ -n "${CONVECT_SKIP_PASSED:-}" ]; then
  mkdir -p "$passed"
  read_besides="$({ git ls-files -z | grep -zv '\.rs$' | xargs -0 sha256sum 2>/dev/null || true; } | sha256sum)"
fi

state_of() { # FOLDER PROGRAM
  local programs=("$2")
  # A package's tests may start its own programs.
  if [ -d "$1/src/bin" ] || [ -f "$1/src/main.rs" ]; then
    programs+=("$(dirname "$(dirname "$2")")"/convect*)
  fi
  { stat -c '%n %s %.9Y' "${programs[@]}"; printf '%s\n' "$read_besides" "${CONVECT_BRIEF:-}"; } | sha256sum
}

# The architecture test reads all sources: it always runs.
has_passed() { # FOLDER PROGRAM
  [ -n "${CONVECT_SKIP_PASSED:-}" ] && [ "${1##*/}" != architecture-test ] &&
    [ "$(cat "$passed/$(basename "$2")" 2>/dev/null)" = "$(state_of "$1" "$2")" ]
}

if [ -n "${CONVECT_SKIP_PASSED:-}" ]; then
  left=() skipped=0
  for line in "${programs[@]}"; do
    if has_passed "${line%%$'\t'*}" "${line#*$'\t'}"; then
      skipped=$((skipped + 1))
    else
      left+=("$line")
    fi
  done
  echo "$skipped of ${#programs[@]} programs of tests are as they were when they passed, and do not run again"
  programs=("${left[@]}")
fi

run_one() { # LOGS FOLDER PROGRAM
  local name status=0 state
  name="$(basename "$3")"
  state="$(state_of "$2" "$3")"
  (cd "$2" && CARGO_MANIFEST_DIR="$2" "$3") >"$1/$name.log" 2>&1 || status=$?
  if [ "$status" = 0 ] && [ -n "${CONVECT_SKIP_PASSED:-}" ]; then
    printf '%s\n' "$state" >"$passed/$name"
  fi
  # One program's lines stay together.
  {
    flock 9
    echo "== ${name%-*} in ${2#"$root/"}"
    cat "$1/$name.log"
    [ "$status" = 0 ] || echo "error: $name ended with $status; by itself: (cd $2 && $3)"
  } 9>"$1/lock"
  [ "$status" = 0 ] || : >"$1/$name.failed"
}
export -f run_one state_of
export root passed read_besides
[ ${#programs[@]} = 0 ] || printf '%s\n' "${programs[@]}" |
  xargs -d '\n' -P "${CONVECT_LANES:-$(nproc)}" -I {} bash -c 'IFS=$'"'\t'"' read -r folder program <<<"$2"; run_one "$1" "$folder" "$program"' _ "$logs" {}

failed="$(find "$logs" -name '*.failed' -printf '%f\n' | sed 's/\.failed$//' | sort)"
[ -z "$failed" ] || fail "programs of tests with failures: ${failed//$'\n'/, }"
