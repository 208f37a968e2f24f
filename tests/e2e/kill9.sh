#!/usr/bin/env bash
# The daemon is killed at random moments under a verifying load, with one shard and with two.
# timeout: 400
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
export TMPDIR="$work"

for shards in 1 2; do
  say "$shards shard(s)"
  lab torture --kills 10 --shards "$shards" --volume 256M
done
