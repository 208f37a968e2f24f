#!/usr/bin/env bash
# NVMe by commands, in a guest with two namespaces: what every drive promises, with ends that are told (and, with
# CONVECT_LONG=1, with ends that are polled); then a pool whose daemon is killed under a load.
# timeout: 1500
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/guest/programs.sh
. "$root/tests/guest/programs.sh"

# With the words that built the workspace, cargo only tells where the program is: other words mean other features, and a build.
tests=$(cargo build --manifest-path "$root/Cargo.toml" --workspace --bins --tests --message-format=json 2>cargo.log |
  sed -n 's/.*\/crates\/drives\/tests\/it\/main\.rs".*"executable":"\([^"]*\)".*/\1/p')
[ -x "$tests" ] || fail "the tests of drives were not built: $(tail -n 5 cargo.log)"
mkdir -p files/sbin
strip -o files/sbin/drives-tests "$tests"
for program in convect convect-lab; do
  strip -o "files/sbin/$program" "$CONVECT_BIN/$program"
done
take_libraries_of_all files

# boot SCRIPT LINE DRIVES [KEY=VALUE...]: fresh drives of so many MiB each for a guest, whose kernel is told LINE. A guest
# whose own kernel fails is started again, twice at most: that of Debian 12 once did while it looked for ends.
boot() {
  local script=$1 line=$2 sizes=$3 try size disks number
  shift 3
  for try in 1 2 3; do
    disks="" number=0
    for size in $sizes; do
      rm -f "drive$number.img"
      truncate -s "${size}M" "drive$number.img"
      disks+="${disks:+,}drive$number.img"
      number=$((number + 1))
    done
    if GUEST_FILES="$work/files" GUEST_LINE="oops=panic $line" GUEST_MIB=1024 GUEST_TIMEOUT=900 \
      bash "$root/tests/guest/run.sh" "$script" "nvme:$disks" "$script" "$@" >"$script.log" 2>&1; then
      return
    fi
    grep -q 'Kernel panic - not syncing: Fatal exception' "$script.log" || break
    say "the kernel of the guest failed, try $try: $(grep -m 3 -E 'BUG:|Oops|RIP:' "$script.log" | tr '\r\n' '  ')"
  done
  fail "$(tail -n 60 "$script.log")"
}

# Emulated, a boot costs a minute of a core: both in one, and ./dev campaign has the other way to learn of ends, too.
say "what every drive promises, told of ends; then a pool, killed under a load"
cp "$root/tests/guest/scripts/drives" files/drives
boot nvme "" "64 512 512" fast=1n1 slow=2n1
grep -q '^GUEST-POLLS 0' nvme.log || fail "this guest polls: $(grep GUEST-POLLS nvme.log)"
grep -q '13 passed' nvme.log || fail "not the whole contract ran: $(grep 'test result' nvme.log)"
grep -q ' 0 corrupt copies' nvme.log || fail "$(tail -n 30 nvme.log)"
if [ -n "${CONVECT_LONG:-}" ]; then
  say "what every drive promises, looking for ends"
  boot drives nvme.poll_queues=2 "64"
  grep -q '^GUEST-POLLS 1' drives.log || fail "this guest does not poll: $(grep GUEST-POLLS drives.log)"
  grep -q '13 passed' drives.log || fail "not the whole contract ran: $(grep 'test result' drives.log)"
fi
