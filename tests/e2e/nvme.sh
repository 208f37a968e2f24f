#!/usr/bin/env bash
# NVMe by commands, in a guest with two namespaces: what every drive promises, with completions by interrupt (and, with
# CONVECT_LONG=1, polled ones); then a pool whose daemon is killed under a load.
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

# boot SCRIPT MIB WORDS: two fresh drives of MIB for a guest, whose kernel is told WORDS. A guest whose own kernel fails is
# begun anew, twice at most: that of Debian 12 once did while it looked for ends.
boot() {
  local try
  for try in 1 2 3; do
    rm -f one.img two.img
    truncate -s "$2M" one.img two.img
    if GUEST_FILES="$work/files" GUEST_LINE="oops=panic $3" GUEST_MIB=1024 GUEST_TIMEOUT=900 \
      bash "$root/tests/guest/run.sh" "$1" "nvme:one.img,two.img" "$1" >"$1.log" 2>&1; then
      return
    fi
    grep -q 'Kernel panic - not syncing: Fatal exception' "$1.log" || break
    say "the kernel of the guest failed, try $try: $(grep -m 3 -E 'BUG:|Oops|RIP:' "$1.log" | tr '\r\n' '  ')"
  done
  fail "$(tail -n 60 "$1.log")"
}

# The contract of drives ran in a guest whose log this is, and the guest learned of completions so.
contract() { # LOG POLLS
  grep -q "^GUEST-POLLS $2" "$1" || fail "not the guest that was meant: $(grep GUEST-POLLS "$1")"
  grep -q '13 passed' "$1" || fail "not the whole contract ran: $(grep 'test result' "$1")"
}

# Emulated, a boot costs a minute of a core: one guest does both, and ./dev campaign has polled completions, too.
say "what every drive promises, with completions by interrupt; then a pool of the drives, killed under a load"
boot nvme 256 ""
contract nvme.log 0
grep -q ' 0 wrong copies' nvme.log || fail "$(tail -n 30 nvme.log)"
if [ -n "${CONVECT_LONG:-}" ]; then
  say "what every drive promises, with polled completions"
  boot drives 64 nvme.poll_queues=2
  contract drives.log 1
fi
