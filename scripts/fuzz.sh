#!/usr/bin/env bash
# Fuzzes the decoders of everything that comes from a drive or a client: fuzz.sh [TARGET...]
# [--seconds N] [--list] [--keep]. Begins with the inputs in fuzz/corpus; what is found on the way
# is kept only with --keep. Two targets run at a time.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

seconds="${CONVECT_FUZZ_SECONDS:-60}"
keep=no
targets=()
mapfile -t known < <(sed -n 's/^name = "\(.*\)"$/\1/p' fuzz/Cargo.toml | tail -n +2)

while [ $# -gt 0 ]; do
  case "$1" in
    --seconds)
      [ $# -ge 2 ] || fail "--seconds needs a number"
      seconds=$2
      shift
      ;;
    --keep) keep=yes ;;
    --list)
      printf '%s\n' "${known[@]}"
      exit 0
      ;;
    -*) fail "fuzz knows --seconds N, --list and --keep, not '$1'" ;;
    *)
      case " ${known[*]} " in
        *" $1 "*) targets+=("$1") ;;
        *) fail "no fuzz target is called '$1'; there are: ${known[*]}" ;;
      esac
      ;;
  esac
  shift
done
case "$seconds" in '' | *[!0-9]*) fail "seconds are a whole number, not '$seconds'" ;; esac
[ "$seconds" -gt 0 ] || fail "0 seconds would never end; give at least 1"
[ ${#targets[@]} -gt 0 ] || targets=("${known[@]}")

use_rust
# The flags that libFuzzer needs are not stable; they are taken of the pinned toolchain all the
# same, rather than a second one. No sanitizer: the decoders have no unsafe code.
export RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=0
CARGO_TARGET_DIR="$(target_dir)/fuzz"
export CARGO_TARGET_DIR
step "build"
cargo fuzz build --sanitizer none
host="$(rustc -vV | sed -n 's/^host: //p')"
binaries="$CARGO_TARGET_DIR/$host/release"
# Seconds that an input may take, and the exit code when one took longer.
input_s=10
timed_out=70

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# One target: its corpus first, then what chance makes of it. An input takes 10 s at most and the
# process 512 MiB; each target has a bound of its own for one record. A shared machine may stand still
# for 10 s: an input that took too long is tried again by itself, and the target goes on if it ends now.
run_one() {
  local target=$1 status tries
  mkdir -p "$work/$target.found" "fuzz/artifacts/$target" "fuzz/corpus/$target"
  for tries in 1 2 3; do
    status=0
    "$binaries/$target" "$work/$target.found" "fuzz/corpus/$target" \
      -max_total_time="$seconds" -timeout="$input_s" -rss_limit_mb=512 -max_len=16384 -print_final_stats=1 \
      -artifact_prefix="fuzz/artifacts/$target/" >"$work/$target.log" 2>&1 || status=$?
    if [ "$status" != "$timed_out" ] || [ "$tries" = 3 ] || ! ends_in_time "$target"; then break; fi
    echo "$target: an input took over $input_s s and little when it was tried again: the machine stood still; once more"
  done
  if [ "$status" = 0 ]; then
    printf 'PASS %s: %s inputs in %s s\n' "$target" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$target.log")" "$seconds"
    return 0
  fi
  printf 'FAIL %s: exit code %s; the input is in fuzz/artifacts/%s; from its log:\n' \
    "$target" "$status" "$target"
  { grep -A 2 'panicked at' "$work/$target.log" || true; tail -n 20 "$work/$target.log"; } |
    cut -c1-300 | sed 's/^/  | /'
  : >"$work/$target.failed"
}

# Whether the inputs of a target that took too long do not when nothing else of it runs; then they are removed.
ends_in_time() {
  local late
  mapfile -t late < <(find "fuzz/artifacts/$1" -name 'timeout-*')
  [ ${#late[@]} -gt 0 ] || return 1
  "$binaries/$1" -timeout="$input_s" -rss_limit_mb=512 "${late[@]}" >/dev/null 2>&1 || return 1
  rm "${late[@]}"
}

# A repository is no place for thousands of inputs: at most this many a target, of all sizes, and one
# of every record as the program writes it.
corpus_max=80

minimise() {
  local target=$1 count file
  mkdir "$work/$target.small"
  "$binaries/$target" -merge=1 "$work/$target.small" "fuzz/corpus/$target" "$work/$target.found" \
    >"$work/$target.log" 2>&1 || fail "the corpus of $target could not be reduced"
  rm -rf "fuzz/corpus/$target"
  mkdir "fuzz/corpus/$target"
  count="$(find "$work/$target.small" -type f | wc -l)"
  find "$work/$target.small" -type f -printf '%s %p\n' | sort -n | cut -d' ' -f2 |
    awk -v step="$(((count + corpus_max - 1) / corpus_max))" 'step < 2 || NR % step == 1' >"$work/$target.chosen"
  while read -r file; do mv "$file" "fuzz/corpus/$target/"; done <"$work/$target.chosen"
}

step "fuzz ${#targets[@]} targets for $seconds s each"
for target in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
  run_one "$target" &
done
wait
if [ "$keep" = yes ]; then
  for target in "${targets[@]}"; do minimise "$target"; done
  (cd fuzz && cargo run --quiet --example seeds)
fi
failed="$(find "$work" -name '*.failed' | wc -l)"
echo "fuzz: $((${#targets[@]} - failed)) passed, $failed failed"
[ "$failed" = 0 ] || exit 1
