#!/bin/sh
# Measures what a snapshot costs the writes after it on LVM's thin volumes (device-mapper's
# `thin-pool`), to read beside `./dev bench snapshots`. The host's kernel may lack them, so a guest
# runs them on a raw file of this machine, and the load with it; its processor is emulated where it
# cannot be virtual. So only the shares and the bytes mean something, not the IOPS.
#
#   tests/guest/thin.sh [USED_MIB] [SECONDS] [ROUNDS] [CHUNK_KIB]
#
# USED_MIB (512) is the volume, written whole before; each of ROUNDS (3) writes blocks of 4 KiB at
# random for SECONDS (3), takes a snapshot, writes again and deletes it. CHUNK_KIB (64) is what the
# pool copies. GUEST_ACCEL is how its processor is run (tcg). Needs fio and dmsetup beside what build.sh needs; files go to TMPDIR.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/programs.sh"
used=${1:-512} seconds=${2:-3} rounds=${3:-3} chunk=${4:-64}
for number in "$used" "$seconds" "$rounds" "$chunk"; do
    case $number in
        '' | 0 | *[!0-9]*)
            echo "error: '$number' is not a number above 0; usage: $0 [USED_MIB] [SECONDS] [ROUNDS] [CHUNK_KIB]" >&2
            exit 2
            ;;
    esac
done
PATH=$PATH:/usr/sbin:/sbin
for tool in fio dmsetup qemu-system-x86_64 cpio; do
    command -v "$tool" >/dev/null || {
        echo "error: $tool is missing: apt-get install fio dmsetup qemu-system-x86 cpio" >&2
        exit 1
    }
done
folder=${GUEST_FOLDER:-${XDG_CACHE_HOME:-$HOME/.cache}/convect/guest}
"$here/build.sh" "$folder"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/root"
cp "$here/scripts/thin" "$work/root/script"
printf "%s\n" "used=$used" "seconds=$seconds" "rounds=$rounds" "chunk=$chunk" >"$work/root/parameters"
take_programs "$work/root" fio dmsetup
(cd "$work/root" && find . | cpio -o -H newc --quiet) >"$work/more.cpio"
cat "$work/more.cpio" "$folder/initramfs" >"$work/initramfs"
truncate -s "$((used * 4))M" "$work/data.img"
truncate -s 128M "$work/metadata.img"

code=0
timeout -k 5 "$((240 + rounds * (2 * seconds + 60)))" qemu-system-x86_64 \
    -machine "q35,accel=${GUEST_ACCEL:-tcg}" -cpu max -smp 2 -m 1024 \
    -kernel "$folder/vmlinuz" -initrd "$work/initramfs" \
    -append "console=ttyS0 quiet panic=-1" -no-reboot \
    -drive "file=$work/data.img,format=raw,if=virtio,cache=none,aio=io_uring" \
    -drive "file=$work/metadata.img,format=raw,if=virtio,cache=none,aio=io_uring" \
    -nic none -display none -monitor none -serial stdio \
    </dev/null >"$work/log" 2>&1 || code=$?
if ! grep -q '^GUEST-PASSED' "$work/log"; then
    tail -n 20 "$work/log" >&2
    echo "error: the guest did not measure (qemu ended with $code)" >&2
    exit 1
fi
median() {
    tr -d '\r' <"$work/log" | awk -v what="$1" -v column="$2" \
        '$1 == "THIN" && $2 == what {print $column}' | sort -n |
        awk '{all[NR] = $1} END {print all[int((NR + 1) / 2)]}'
}
before=$(median before 3) after=$(median after 3)
bytes_before=$(median before 4) bytes_after=$(median after 4)
awk -v before="$before" -v after="$after" -v bb="$bytes_before" -v ba="$bytes_after" -v chunk="$chunk" 'BEGIN {
    printf "a thin volume of device-mapper in a guest, chunks of %d KiB, after a snapshot: %d IOPS, %d before: %.0f %%; bytes written to drives a request: %d, %d before: %.2f times\n",
        chunk, after, before, 100 * after / before, ba, bb, ba / bb
}'
