#!/usr/bin/env bash
# Fuzzes the decoders of everything that comes from a drive or a client: fuzz.sh [TARGET...]
# [--seconds N] [--list] [--keep]. Each target first replays its stored inputs (fuzz/corpus and
# fuzz/regressions), then mutates them for N seconds. An input that fails is minimised and stored in
# fuzz/regressions, where every `cargo test` replays it. Other inputs are kept only with --keep.
# CONVECT_LANES targets run side by side (the number of cores). A binary for each subject serves all of its
# targets; the compiler's flags are in fuzz/.cargo/config.toml.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

seconds="${CONVECT_FUZZ_SECONDS:-60}"
lanes="${CONVECT_LANES:-$(nproc)}"
keep=no
targets=()
# The rows of the registry, so that they are known before anything is built: a target and its binary.
declare -A binary_of
known=()
while read -r binary target; do
  known+=("$target")
  binary_of[$target]=$binary
done < <(awk '/^pub const [A-Z]+: &\[Target\]/ {binary = tolower($3); sub(":", "", binary)}
  /^ *name: "/ {split($0, word, "\""); print binary, word[2]}' crates/fuzz-targets/src/target.rs)

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
case "$lanes" in '' | *[!0-9]* | 0) fail "CONVECT_LANES is a whole number from 1 on, not '$lanes'" ;; esac
[ ${#targets[@]} -gt 0 ] || targets=("${known[@]}")

use_rust
export RUST_BACKTRACE=0
step "build"
folder="$(realpath -m "$(target_dir)")/fuzz"
# Flags of the environment would replace those of fuzz/.cargo/config.toml.
(cd fuzz && env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_TARGET CARGO_TARGET_DIR="$folder" cargo build --locked --release)
binaries="$folder/$(rustc -vV | sed -n 's/^host: //p')/release"
# Seconds that an input may take, and the exit code when one took longer.
input_s=10
timed_out=70
# Seconds for the minimisation of an input that failed.
minimise_s=5

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# libfuzzer TARGET WORD...: an input takes 10 s at most and the process 512 MiB; each target has a tighter
# memory bound of its own.
libfuzzer() {
  CONVECT_FUZZ_TARGET=$1 "$binaries/${binary_of[$1]}" -timeout="$input_s" -rss_limit_mb=512 \
    -artifact_prefix="$work/$1.artifacts/" "${@:2}"
}

# The end of a target's log, for a failure.
show_log() {
  { grep -A 2 'panicked at' "$work/$1.log" || true; tail -n 20 "$work/$1.log"; } |
    cut -c1-300 | sed 's/^/  | /'
}

# Every stored input of a target, each once and whole.
replay() {
  local target=$1 status files folders=("fuzz/corpus/$target")
  [ ! -d "fuzz/regressions/$target" ] || folders+=("fuzz/regressions/$target")
  mapfile -t files < <(find "${folders[@]}" -type f | sort)
  # Without a file libFuzzer would begin to fuzz.
  [ ${#files[@]} -gt 0 ] || return 0
  # A second try for a machine that stalled.
  for _ in 1 2; do
    status=0
    libfuzzer "$target" "${files[@]}" >"$work/$target.log" 2>&1 || status=$?
    [ "$status" = "$timed_out" ] || break
  done
  [ "$status" != 0 ] || return 0
  printf 'FAIL %s: the stored input %s fails (exit code %s); from its log:\n' \
    "$target" "$(sed -n 's/^Running: //p' "$work/$target.log" | tail -n 1)" "$status"
  show_log "$target"
  return 1
}

# One target: stored inputs first, then their mutations. A shared machine may stall for 10 s: an input that
# took too long is tried again by itself, and the target starts over if it is in time now.
run_one() {
  local target=$1 status tries
  mkdir -p "$work/$target.found" "$work/$target.artifacts" "fuzz/corpus/$target"
  if ! replay "$target"; then
    : >"$work/$target.failed"
    return 0
  fi
  for tries in 1 2 3; do
    status=0
    libfuzzer "$target" "$work/$target.found" "fuzz/corpus/$target" \
      -max_total_time="$seconds" -max_len=16384 -print_final_stats=1 >"$work/$target.log" 2>&1 || status=$?
    if [ "$status" != "$timed_out" ] || [ "$tries" = 3 ] || ! ends_in_time "$target"; then break; fi
    echo "$target: an input took over $input_s s, and little when it was tried again: the machine stalled; once more"
  done
  if [ "$status" = 0 ]; then
    printf 'PASS %s: %s inputs in %s s\n' "$target" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$target.log")" "$seconds"
    return 0
  fi
  : >"$work/$target.failed"
  printf 'FAIL %s: exit code %s; from its log:\n' "$target" "$status"
  show_log "$target"
  store_regressions "$target"
}

# Whether the inputs of a target that took too long are in time when nothing else of it runs; then they
# are removed.
ends_in_time() {
  local late
  mapfile -t late < <(find "$work/$1.artifacts" -name 'timeout-*')
  [ ${#late[@]} -gt 0 ] || return 1
  libfuzzer "$1" "${late[@]}" >/dev/null 2>&1 || return 1
  rm "${late[@]}"
}

# Makes a regression of every input that failed, of the smallest that still does. What took too long or
# too much memory is kept as it is: each try would take as long.
store_regressions() {
  local target=$1 input small stored
  for input in "$work/$target.artifacts"/*; do
    [ -f "$input" ] || continue
    small="$work/$target.small-input"
    rm -f "$small"
    case "$input" in
      */crash-*)
        CONVECT_FUZZ_TARGET=$target timeout $((2 * minimise_s)) "$binaries/${binary_of[$target]}" -minimize_crash=1 \
          -max_total_time="$minimise_s" -exact_artifact_path="$small" "$input" >/dev/null 2>&1 || true
        if [ -f "$small" ] && ! libfuzzer "$target" "$small" >/dev/null 2>&1; then input=$small; fi
        ;;
    esac
    stored="fuzz/regressions/$target/$(sha1sum <"$input" | cut -c1-12)"
    mkdir -p "fuzz/regressions/$target"
    cp "$input" "$stored"
    echo "FAIL $target: stored $stored ($(stat -c %s "$stored") bytes): fix the bug, name the file after it, commit both"
  done
}

# At most this many inputs a target are committed, of all sizes, besides the seeds.
corpus_max=80

# Reduces the corpus and what was found to the inputs that add coverage.
reduce_corpus() {
  local target=$1 count file
  mkdir "$work/$target.small"
  libfuzzer "$target" -merge=1 "$work/$target.small" "fuzz/corpus/$target" "$work/$target.found" \
    >"$work/$target.log" 2>&1 || fail "the corpus of $target could not be reduced"
  rm -rf "fuzz/corpus/$target"
  mkdir "fuzz/corpus/$target"
  count="$(find "$work/$target.small" -type f | wc -l)"
  find "$work/$target.small" -type f -printf '%s %p\n' | sort -n | cut -d' ' -f2 |
    awk -v step="$(((count + corpus_max - 1) / corpus_max))" 'step < 2 || NR % step == 1' >"$work/$target.chosen"
  while read -r file; do mv "$file" "fuzz/corpus/$target/"; done <"$work/$target.chosen"
}

step "fuzz ${#targets[@]} targets for $seconds s each, $lanes side by side"
for target in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$lanes" ]; do wait -n || true; done
  run_one "$target" &
done
wait
if [ "$keep" = yes ]; then
  for target in "${targets[@]}"; do reduce_corpus "$target"; done
  cargo run --quiet -p convect-fuzz-targets --example seeds
fi
failed="$(find "$work" -name '*.failed' | wc -l)"
echo "fuzz: $((${#targets[@]} - failed)) passed, $failed failed"
[ "$failed" = 0 ] || exit 1
