#!/usr/bin/env bash
# callgrind.sh PROGRAM WORD...: runs convect-bench under callgrind, and prints a line for each of its cases: the name and
# instructions a request.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

[ $# -ge 2 ] || fail "usage: callgrind.sh PROGRAM cases|shards [WORD...]"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
# A program that hangs is ended: it needs less than a minute for each ten cases.
timeout -s KILL 600 valgrind -q --tool=callgrind --instr-atstart=no --callgrind-out-file="$folder/out" "$@" >&2 ||
  fail "'$*' under callgrind ended with exit code $?: run it alone to see why"
for dump in $(find "$folder" -name 'out.*' | sort -V); do
  awk '/^desc: Trigger: Client Request: / {name = $5; requests = $6}
       /^totals: / {count = $2}
       END {if (requests > 0) printf "%s %.1f\n", name, count / requests}' "$dump"
done
