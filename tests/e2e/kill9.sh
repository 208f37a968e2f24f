#!/usr/bin/env bash
# The daemon is killed at random moments under a verifying load, with one shard, with two, and over
# mirrors whose drives come and go.
# timeout: 400
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
export TMPDIR="$work"

# ./dev campaign has more. Each kill is followed by a look at every block: five short lives write but few of a large volume.
kills=5 volume=48M mirrored=32M
[ -z "${CONVECT_LONG:-}" ] || kills=60 volume=256M mirrored=128M

for shards in 1 2; do
  say "$shards shard(s)"
  lab torture --kills $kills --shards "$shards" --volume $volume --restart-within 300
done

say "mirrors, whose drives go away and return"
lab torture --mirror --kills $kills --volume $mirrored --no-fio --restart-within 300
