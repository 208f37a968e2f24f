#!/usr/bin/env bash
# Makes the images of the present format, once for each version of it: tests/images/make.sh DIR.
# DIR/NAME.tar.xz has the drives of a pool, sparse; DIR/SHA256SUMS what its volumes hold. What was
# made is committed and never made again: tests/e2e/images.sh opens it with every later build.
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
[ $# = 1 ] || { echo "usage: tests/images/make.sh DIR" >&2 && exit 2; }
mkdir -p "$1"
target="$(cd -- "$1" && pwd)"
scratch="$(mktemp -d)"
cd "$scratch" || exit 1
. "$here/../e2e/lib.sh"
defer "rm -rf --one-file-system '$scratch'"

# Content that is different in every block and compresses well. Pieces of all sizes, at the ends
# of regions, some written again, trimmed or zeroed; then a second time beside what has sunk.
write() { # VOLUME SEED
  nbdsh -u "$(uri "$1")" -c "
import random
random.seed($2)
size = h.get_size()
def blocks(count):
    return b''.join((b'%d %09d. ' % ($2, random.randrange(1 << 29)) * 512)[:4096] for _ in range(count))
for _ in range(40):
    start = random.choice((0, 1 << 20, 255 << 20, 256 << 20, 300 << 20)) % size
    at = min(start + random.randrange(256) * 4096, size - (64 << 12))
    h.pwrite(blocks(random.choice((1, 1, 1, 4, 16, 64))), at)
h.pwrite(blocks(256), 2 << 20)
h.pwrite(b'half a block....' * 32, (1 << 20) + 512)
h.trim(64 << 10, 2 << 20)
h.zero(4096, (2 << 20) + (128 << 10))
h.flush()
"
}

sums() { # POOL VOLUME...
  local pool=$1 volume
  shift
  for volume in "$@"; do
    printf '%s  %s/%s\n' "$(nbdcopy --no-extents "$(uri "$volume")" - | sha256sum | cut -d' ' -f1)" \
      "$pool" "$volume" >>"$target/SHA256SUMS"
  done
}

pack() { # POOL
  tar --sparse --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$1.tar" "$1"
  xz -9e -T1 -c "$1.tar" >"$target/$1.tar.xz"
  rm -r "$1.tar" "$1"
}

# What was written first is at home. A pool that fills its fast tier first keeps it there.
has_sunk() {
  [ "$pool" != two-shards ] || return 0
  convect --json pool status "$pool" >status.json
  [ "$(field 'd["fast_dirty"] == 0 and d["fast_shadow"] > 0' <status.json)" = True ]
}

# A pool in its folder with a big and a small volume, written in two goes: the first has sunk.
fill() { # POOL ARGUMENT...
  pool=$1
  mkdir "$pool"
  convect pool create "$@" --accept-unmirrored
  convect volume create "$pool/big" --size 320M
  convect volume create "$pool/small" --size 5M --lba 4096
  export_nbd big "$pool/big"
  export_nbd small "$pool/small"
  write big 1
  nbdsh -u "$(uri small)" -c 'h.pwrite(bytes(range(256)) * 16, 4096); h.flush()'
  wait_until 60 has_sunk
  write big 2
}

drive() { printf 'file:%s/%s/%s.img?size=%s\n' "$work" "$pool" "$1" "$2"; }

: >"$target/SHA256SUMS"
start_daemon
for pool in one-shard two-shards mirrored unclean; do
  case $pool in
    one-shard) shape=(--shards 1 fast "$(drive fast 96M)" slow "$(drive slow1 64M)" "$(drive slow2 96M)") ;;
    two-shards) shape=(--shards 2 --policy fast-first fast "$(drive fast 128M)" slow stripe:64k "$(drive slow1 64M)" "$(drive slow2 96M)") ;;
    mirrored) shape=(--shards 2 fast mirror "$(drive fast1 128M)" "$(drive fast2 128M)" slow mirror "$(drive slow1 96M)" "$(drive slow2 96M)") ;;
    unclean) shape=(--shards 2 fast mirror "$(drive fast1 128M)" "$(drive fast2 128M)" slow "$(drive slow 96M)") ;;
  esac
  fill "$pool" "${shape[@]}"
  sums "$pool" big small
  # Addresses of this machine are of no use in an image.
  convect export delete big --yes
  convect export delete small --yes
  if [ $pool = unclean ]; then
    kill_daemon
  else
    convect pool export "$pool"
  fi
  pack "$pool"
done
ls -l "$target"
