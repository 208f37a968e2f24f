#!/bin/sh
# Boots the guest and runs a script in it.
#
#   tests/guest/run.sh NAME DISK SCRIPT [KEY=VALUE]...
#
# NAME is for messages. DISK is the socket of a vhost-user-blk export; or `network` for a guest without a
# disk, with an iSCSI initiator and a network in which this machine's loopback is 10.0.2.2; or iscsi://...,
# where the guest is put first with qemu-img, to be booted by QEMU's own initiator; or nvme:FILE[,FILE], for a
# guest with an NVMe drive over each file and two nodes of memory. SCRIPT is the name of a file in tests/guest/scripts; KEY=VALUE are
# variables that it sees. The guest's console goes to the standard output as it comes. Ends with 0
# when the script succeeded, and is bounded by GUEST_TIMEOUT seconds (default 180).
# GUEST_FOLDER is where build.sh put the guest; what is in GUEST_FILES, if set, lies in its root, too;
# GUEST_LINE is more that its kernel is told; GUEST_MIB its memory (512).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/programs.sh"
if [ $# -lt 3 ]; then
    echo "usage: $0 NAME DISK SCRIPT [KEY=VALUE]..." >&2
    exit 2
fi
name=$1 disk=$2 script=$here/scripts/$3
shift 3
folder=${GUEST_FOLDER:-${XDG_CACHE_HOME:-$HOME/.cache}/convect/guest}
if [ ! -f "$script" ]; then
    echo "error: there is no script $script" >&2
    exit 2
fi
"$here/build.sh" "$folder"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
more=""
case $disk in
    network)
        more=initiator
        set -- disk= "$@"
        ;;
    nvme:*) set -- disk=/dev/nvme0n1 "$@" ;;
esac
compose "$work/initramfs" "$folder" "$script" "$more" "$@"
set -- -kernel "$folder/vmlinuz" -initrd "$work/initramfs" -append "$guest_line ${GUEST_LINE:-}"
case $disk in
    network) set -- "$@" -nic user,model=virtio-net-pci ;;
    iscsi://*)
        make_bootable "$work/boot.img" "$folder/vmlinuz" "$work/initramfs"
        qemu-img convert -n -f raw -O raw "$work/boot.img" "$disk"
        set -- -drive "file=$disk,format=raw,if=virtio,cache=none" -nic none
        ;;
    nvme:*)
        # Its memory lies in two nodes, with a core each.
        half=$((${GUEST_MIB:-512} / 2))
        set -- "$@" -nic none -object "memory-backend-ram,id=near,size=${half}M" \
            -object "memory-backend-ram,id=far,size=${half}M" \
            -numa node,nodeid=0,cpus=0,memdev=near -numa node,nodeid=1,cpus=1,memdev=far
        number=0
        for file in $(echo "${disk#nvme:}" | tr , ' '); do
            set -- "$@" -drive "file=$file,format=raw,if=none,id=drive$number,cache=none,aio=io_uring" \
                -device "nvme,serial=convect$number,drive=drive$number"
            number=$((number + 1))
        done
        ;;
    *)
        set -- "$@" -nic none -object memory-backend-memfd,id=memory,size=512M,share=on \
            -numa node,memdev=memory -chardev "socket,id=disk,path=$disk,reconnect=1" \
            -device vhost-user-blk-pci,chardev=disk,num-queues=2
        ;;
esac

mkfifo "$work/console"
tee "$work/log" <"$work/console" &
reader=$!
code=0
timeout -k 5 "${GUEST_TIMEOUT:-180}" qemu-system-x86_64 \
    -machine q35,accel=tcg -cpu max -smp 2 -m "${GUEST_MIB:-512}" -no-reboot "$@" \
    -display none -monitor none -serial stdio \
    </dev/null >"$work/console" || code=$?
wait "$reader"
if grep -q '^GUEST-PASSED' "$work/log"; then
    exit 0
fi
if [ "$code" -eq 124 ]; then
    echo "error: guest $name did not end within ${GUEST_TIMEOUT:-180} s" >&2
else
    echo "error: guest $name failed (qemu ended with $code)" >&2
fi
exit 1
