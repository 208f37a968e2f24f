#!/usr/bin/env bash
# Real file systems on a loop device over the FUSE file: filled, checked, and the same after the
# daemon was restarted.
# timeout: 300
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

check_filesystem() {
  case "$1" in
    ext4) e2fsck -fn "$2" ;;
    xfs) xfs_repair -n "$2" ;;
    btrfs) btrfs check --readonly "$2" ;;
  esac
}

fill() {
  cp -r /usr/include/linux "$1/tree"
  head -c 64M /dev/urandom >"$1/large"
  head -c 20M /dev/urandom >"$1/removed"
  for number in $(seq 1 200); do
    head -c $((number * 37)) /dev/urandom >"$1/small-$number"
  done
  sync -f "$1"
  rm "$1/removed"
  fallocate --punch-hole --offset 1M --length 3M "$1/large"
  fstrim "$1"
}

# Of all files of the mounted one. By OpenSSL, which takes a seventh of what coreutils take.
hashes() { (cd mnt && find . -type f -print0 | sort -z | xargs -0 openssl dgst -sha256 -r); }

mkdir files mnt
defer "umount '$work/mnt' 2>/dev/null"
start_daemon
create_pool pool 768M 2G
for kind in ext4 xfs btrfs; do
  say "$kind: make, fill, check"
  convect volume create "pool/$kind" --size 1G
  convect export create "$kind" "pool/$kind" fuse --mount "$work/files"
  attach_loop loop "files/$kind" --direct-io=on
  case "$kind" in ext4) mkfs.ext4 -q -F "$loop" ;; xfs) mkfs.xfs -q -f "$loop" ;; *) mkfs.btrfs -q -f "$loop" ;; esac
  mount "$loop" mnt
  fill mnt
  hashes >"$kind.hashes"
  [ "$(wc -l <"$kind.hashes")" -gt 300 ] || fail "the file system was not filled"
  umount mnt
  check_filesystem "$kind" "$loop"
  detach_loop "$loop"
done

say "the daemon restarts"
restart_daemon
for kind in ext4 xfs btrfs; do
  attach_loop loop "files/$kind" --direct-io=on
  mount -o ro "$loop" mnt
  hashes | cmp - "$kind.hashes" || fail "$kind: files have changed"
  umount mnt
  check_filesystem "$kind" "$loop"
  detach_loop "$loop"
  say "$kind: the same after the restart"
done
for kind in ext4 xfs btrfs; do
  convect export delete "$kind" --yes
done
stop_daemon
