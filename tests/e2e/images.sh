#!/usr/bin/env bash
# Pools that earlier versions left (tests/images) open with this one, clean or not: their volumes
# hold what they held, and go on holding it when they are written to and opened again.
# timeout: 240
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

drives_of() { # POOL
  local image
  drives=()
  images=()
  for image in "$1"/*.img; do
    images+=("$image")
    drives+=("file:$work/$image")
  done
}

check() { # WHAT SUM VOLUME
  local sum
  sum="$(nbdcopy --no-extents "$(uri "$3")" - | sha256)"
  [ "$sum" = "$2" ] || fail "$1: volume $3 holds something else than when it was made"
}

opened=0
start_daemon
for archive in "$root"/tests/images/v*/*.tar.xz; do
  pool="$(basename "$archive" .tar.xz)"
  sums="$(dirname "$archive")/SHA256SUMS"
  big="$(sed -n "s,  $pool/big\$,,p" "$sums")"
  small="$(sed -n "s,  $pool/small\$,,p" "$sums")"
  [ -n "$big" ] && [ -n "$small" ] || fail "$sums does not tell what $pool holds"
  say "${archive#"$root"/tests/images/}"
  xz -dc "$archive" | tar -xf -
  drives_of "$pool"

  python3 "$root/tests/format/read_pool.py" --json "${images[@]}" >read.json
  [ "$(field '[v["sha256"] for v in d["volumes"]]' <read.json)" = "['$big', '$small']" ] ||
    fail "the images do not hold what docs/format.md says: $(cat read.json)"
  if [ "$pool" = unclean ] && [ "$(field 'd["records"]' <read.json)" -lt 20 ]; then
    fail "$pool has next to no journal to apply"
  fi

  convect check --data "${drives[@]}" >check.out || fail "check finds it damaged: $(cat check.out)"

  convect pool import "$pool" --drive "${drives[@]}"
  convect volume list | grep -q "$pool/big" || fail "the volume is not listed"
  export_nbd big "$pool/big"
  export_nbd small "$pool/small"
  check "opened" "$big" big
  check "opened" "$small" small

  say "written to, killed, opened again"
  nbdsh -u "$(uri big)" -c 'h.pwrite(b"new block" * 512 * 8, 200 << 20); h.flush()'
  kill_daemon
  start_daemon
  nbdsh -u "$(uri big)" -c '
assert h.pread(9 * 4096, 200 << 20) == b"new block" * 512 * 8
h.trim(9 * 4096, 200 << 20)
h.flush()
'
  check "opened again" "$big" big
  check "opened again" "$small" small
  convect export delete big --yes
  convect export delete small --yes
  convect pool destroy "$pool" --yes
  rm -r "$pool"
  opened=$((opened + 1))
done
[ "$opened" -ge 4 ] || fail "only $opened images were found"
stop_daemon
