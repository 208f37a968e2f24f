#!/usr/bin/env bash
# Instructions of the key cases, held against tests/instructions.txt: a case that costs 3 % more fails.
# instructions.sh --write replaces that file. They are counted in the simulation's build, which is what ships and, at
# each known bug, a look whether it is on: that saves a whole build of the engine.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
use_rust

table=tests/instructions.txt
limit=3
found="$(mktemp)"
trap 'rm -f "$found"' EXIT
made_with="$(rustc --version | cut -d' ' -f1,2), $(valgrind --version), glibc $(getconf GNU_LIBC_VERSION | cut -d' ' -f2), $(uname -m)"
bash scripts/sim.sh build
bash scripts/callgrind.sh "$(target_dir)/simulation/convect-bench" cases >"$found"

if [ "${1:-}" = --write ]; then
  {
    echo "# Instructions a request of each case of \`convect-bench cases\`; written by scripts/instructions.sh --write"
    echo "# with $made_with"
    cat "$found"
  } >"$table"
  cat "$table"
  exit 0
fi
[ -f "$table" ] || fail "there is no $table: write it with scripts/instructions.sh --write"
echo "the table's: $(sed -n 's/^# with //p' "$table"); here: $made_with"
if awk -v limit="$limit" '
  FNR == NR {if ($1 != "#") {before[$1] = $2; cases++}; next}
  {seen++; if (!($1 in before)) {printf "%-20s %10.1f  not in the table\n", $1, $2; bad = 1; next}
   change = 100 * ($2 / before[$1] - 1)
   word = change > limit ? "  TOO MANY" : (change < -limit ? "  fewer: write the table anew" : "")
   printf "%-20s %10.1f -> %10.1f  %+6.2f %%%s\n", $1, before[$1], $2, change, word
   if (change > limit) bad = 1}
  END {if (seen != cases) {print seen " cases instead of " cases; bad = 1}; exit bad}' "$table" "$found"; then
  echo "instructions: $(wc -l <"$found") passed, 0 failed"
  exit 0
fi
echo "A case costs over $limit % more than the table says, or the cases are not the table's. See where with"
echo "\`./dev bench slower COMMIT\` and callgrind_annotate; when it is worth its price, or this toolchain is the new one,"
echo "write the new figures with \`bash scripts/instructions.sh --write\` and say why in the commit."
echo "instructions: 0 passed, 1 failed"
exit 1
