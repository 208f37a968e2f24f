#!/usr/bin/env bash
# profiled.sh [CARGO-WORD...]: the release's programs, compiled with the profile of two minutes of load, into target/profiled.
# The load: what `convect lab compare` asks of each front end, from memory, null drives, a mirror and a file; then a pool that
# is too large for its RAM and its fast tier, so that data sinks, is missed and rises.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
use_rust
[ -x "$(llvm_profdata)" ] || fail "a profile needs rustup's llvm-tools: rustup component add llvm-tools"

work="$(mktemp -d)"
daemon=""
clean() {
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT

# A volume of 1 GiB with 512 MiB of fast space and 128 MiB of RAM.
tiers() { # PROGRAMS
  local convect="$1/convect" guest="vhost-user-blk:$work/guest.sock" nbd="nbd+unix:///disk?socket=$work/nbd.sock" lab
  lab="$(target_dir)/release/convect-lab"
  cat >"$work/convect.toml" <<TOML
socket = "$work/convect.sock"
state_dir = "$work/state"
threads = 1
ram_tier = "128M"
TOML
  "$convect" serve --config "$work/convect.toml" >"$work/said" 2>"$work/log" &
  daemon=$!
  until grep -q '^ready' "$work/said"; do
    kill -0 "$daemon" 2>/dev/null || fail "the daemon ended: $(cat "$work/log")"
    sleep 0.1
  done
  export CONVECT_SOCKET="$work/convect.sock"
  truncate -s 512M "$work/fast"
  "$convect" pool create tiers fast "$work/fast" slow 'ram:slow?size=3G' --accept-unmirrored >/dev/null
  "$convect" volume create tiers/disk --size 1G >/dev/null
  "$convect" export create guest tiers/disk vhost-user-blk --path "$work/guest.sock" >/dev/null
  "$convect" export create disk tiers/disk nbd --listen "unix:$work/nbd.sock" >/dev/null
  "$lab" load "$nbd" --overwrite --reads 0 --pattern sequential --blocks 1M --depth 4 --seconds 8
  "$lab" load "$guest" --overwrite --reads 0 --blocks 4k:80,64k:20 --seconds 8
  "$convect" snapshot create tiers/disk@one >/dev/null
  "$lab" load "$guest" --overwrite --reads 70 --blocks 4k:80,64k:20 --pattern zipf:0.99 --seconds 8
  "$lab" load "$guest" --blocks 4k --pattern hot:10:90 --seconds 8
  # Its end writes what it counted.
  kill "$daemon"
  wait "$daemon"
  daemon=""
}

load() { # PROGRAMS
  local groups=vhost,null,mirror,nbd,iscsi,file client=0
  if [ -w /dev/fuse ] && command -v fusermount3 >/dev/null; then groups+=,fuse; fi
  [ "$(nproc)" = 1 ] || client=1
  "$(target_dir)/release/convect-lab" compare --convect "$1/convect" --alone --only "$groups" --client-core "$client" \
    --size 256M --rounds 1 --seconds 1 --again 0
  tiers "$1"
}

step "build, to ask for load"
cargo build --release -p convect-lab --bins "$@"
step "build twice, with the load between"
profiled_build convect-cli load "$@"
mkdir -p "$(target_dir)/profiled"
for program in "$programs/convect" "$(target_dir)/release/convect-lab"; do
  cp "$program" "$(target_dir)/profiled/"
done
echo "made: $(target_dir)/profiled/convect, and convect-lab beside it"
