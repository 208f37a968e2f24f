#!/usr/bin/env bash
# slower.sh COMMIT [OTHER]: the key cases on two commits (the second: HEAD) in turn, and the second's ratios to the first:
# instructions, then processor time (medians of the rounds).
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/commits.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/commits.sh"
cd "$root"
use_rust

rounds=7
[ $# -ge 1 ] || fail "usage: ./dev bench slower COMMIT [OTHER]: COMMIT is what OTHER (HEAD) is held against"
folder="$(mktemp -d)"
trap 'remove_trees "$folder"' EXIT
build_commits "$folder" "$(target_dir)/slower" "$1" "${2:-HEAD}" --release -p convect-bench
step "count"
for number in 1 2; do
  bash scripts/callgrind.sh "$folder/$number/convect-bench" cases >"$folder/count-$number"
done
step "time, $rounds rounds"
for round in $(seq "$rounds"); do
  # Who comes first takes turns.
  for number in $(((round % 2) + 1)) $((2 - (round % 2))); do
    "$folder/$number/convect-bench" cases | sort | sed "s/^/$number /" >>"$folder/times"
  done
done
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
printf '%-20s %12s %12s %7s %10s %10s %7s\n' "" "instructions" "" "ratio" "ns" "" "ratio"
while read -r name count; do
  other="$(awk -v name="$name" '$1 == name {print $2}' "$folder/count-2")"
  times=()
  for number in 1 2; do
    times+=("$(awk -v n="$number" -v name="$name" '$1 == n && $2 == name {print $3}' "$folder/times" | median)")
  done
  echo "$name $count ${other:-0} ${times[*]}"
done <"$folder/count-1" |
  awk '{printf "%-20s %12.1f %12.1f %7.3f %10.1f %10.1f %7.3f\n", $1, $2, $3, $3 / $2, $4, $5, $5 / $4}'
