#!/usr/bin/env bash
# same.sh COMMIT [OTHER]: whether the engine does the same at two commits (the second: HEAD), as it has to where code is only
# moved: digests of everything that happens in seeds 1 to CONVECT_SAME_SEEDS (200) of the simulation, and instructions of the
# key cases. Fails when a digest differs.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/commits.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/commits.sh"
cd "$root"
use_rust

[ $# -ge 1 ] || fail "usage: ./dev bench same COMMIT [OTHER]: COMMIT is what OTHER (HEAD) is held against"
seeds="${CONVECT_SAME_SEEDS:-200}"
folder="$(mktemp -d)"
trap 'remove_trees "$folder"' EXIT
build_commits "$folder" "$(target_dir)/same" "$1" "${2:-HEAD}" \
  --profile simulation -p sim -p convect-bench --features sim/mutations
step "digests of $seeds seeds"
for number in 1 2; do
  # A seed whose states end sooner says so with its own line.
  MIMALLOC_PURGE_DELAY=-1 "$folder/$number/sim" --threads "$(nproc)" --seed 1 --seeds "$seeds" --states 300 >"$folder/log-$number" ||
    fail "the simulation of commit $number found something wrong: $(tail -n 3 "$folder/log-$number")"
  sed -n 's/^seed \([0-9]*\): .* trace \([0-9a-f]*\)$/\1 \2/p' "$folder/log-$number" | sort -n >"$folder/digests-$number"
  [ "$(wc -l <"$folder/digests-$number")" = "$seeds" ] || fail "commit $number has not told the digest of each seed"
done
differ="$(join <(sort "$folder/digests-1") <(sort "$folder/digests-2") | awk '$2 != $3 {print $1}' | wc -l)"
echo "$((seeds - differ)) of $seeds digests are the same"
step "instructions"
for number in 1 2; do
  bash scripts/callgrind.sh "$folder/$number/convect-bench" cases | sort >"$folder/count-$number"
done
join "$folder/count-1" "$folder/count-2" |
  awk '{printf "%-20s %12.1f %12.1f  %+6.2f %%\n", $1, $2, $3, 100 * ($3 / $2 - 1); one += $2; two += $3}
       END {printf "%-20s %12.1f %12.1f  %+6.2f %%\n", "sum", one, two, 100 * (two / one - 1)}'
[ "$differ" = 0 ] || fail "the engine does not do the same: first at seed $(join <(sort "$folder/digests-1") <(sort "$folder/digests-2") | sort -n | awk '$2 != $3 {print $1; exit}')"
