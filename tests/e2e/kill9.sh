#!/usr/bin/env bash
# The daemon is killed at random moments under a verifying load, with one shard, with two, and over
# mirrors whose drives come and go.
# timeout: 400
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
export TMPDIR="$work"

# ./dev campaign has more.
kills=5
[ -z "${CONVECT_LONG:-}" ] || kills=60

for shards in 1 2; do
  say "$shards shard(s)"
  lab torture --kills $kills --shards "$shards" --volume 256M --restart-within 300
done

say "mirrors, whose drives go away and return"
lab torture --mirror --kills $kills --volume 128M --no-fio --restart-within 300
