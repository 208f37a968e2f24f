#!/bin/sh
# Boots a guest and runs a script in it.
#
#   tests/guest/run.sh NAME DISK SCRIPT [KEY=VALUE]...
#
# NAME is for messages. SCRIPT is the name of a file in tests/guest/scripts; KEY=VALUE are variables that it sees,
# beside `disk`, the device. DISK says what the guest gets, and which kernel runs it:
#
#   User Mode Linux, a program of this machine, as fast as others:
#     network                   no disk; open-iscsi, multipath-tools and sg3-utils; this machine's loopback is 10.0.2.2
#     nbd:10.0.2.2:PORT/EXPORT  an NBD export by the kernel's own client (see tests/guest/nbd for its variables)
#     vhost:SOCKET              a vhost-user-blk export by the kernel's own front end, virtio_uml
#     ubd:FILE[,FILE...]        files as /dev/ubda, /dev/ubdb...
#
#   QEMU, whose processor is emulated, for drivers that User Mode Linux lacks:
#     SOCKET                    a vhost-user-blk export as a PCI device
#     iscsi://...               a unit that QEMU's own initiator boots from by BIOS; the guest is written there first
#     nvme:FILE[,FILE...]       an NVMe drive over each file, and two nodes of memory
#
# The guest's console goes to the standard output as it comes. Exits with 0 when the script succeeded, and is bounded
# by GUEST_TIMEOUT seconds (default 900, far beyond what an idle machine takes). Killed by SIGTERM it takes the guest with it and leaves nothing.
# GUEST_FOLDER is where build.sh put the guests; what is in GUEST_FILES, if set, lies in the guest's root, too;
# GUEST_LINE is more for its kernel's command line; GUEST_MIB its memory (512).
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
limit=${GUEST_TIMEOUT:-900} mib=${GUEST_MIB:-512}
if [ ! -f "$script" ]; then
    echo "error: there is no script $script" >&2
    exit 2
fi
"$here/build.sh" "$folder"

work=$(mktemp -d)
children=""
# User Mode Linux makes itself the leader of a process group, in which are the processes of its guest: they outlive it
# when it is killed.
kill_group() {
    [ ! -s "$work/uml.pid" ] || kill -KILL -- "-$(cat "$work/uml.pid")" 2>/dev/null || true
}
finish() {
    trap '' INT TERM
    if [ -n "$children" ]; then
        # shellcheck disable=SC2086  # numbers
        kill $children 2>/dev/null || true
        # shellcheck disable=SC2086
        wait $children || true
    fi
    kill_group
    wait
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Starts a program in the background that ends with the guest, at the latest: start PROGRAM [ARG]...
start() {
    timeout -k 5 "$((limit + 30))" "$@" </dev/null >>"$work/helpers.log" 2>&1 &
    children="$children $!"
}
# Waits for a helper's socket: await_socket PATH WHAT
await_socket() {
    left=600
    until [ -S "$1" ]; do
        left=$((left - 1))
        if [ $left -eq 0 ] || ! kill -0 "${children##* }" 2>/dev/null; then
            cat "$work/helpers.log" >&2
            echo "error: guest $name: $2 did not start" >&2
            exit 1
        fi
        sleep 0.05
    done
}
# A network for User Mode Linux; it is not this machine's, so needs no rights, and guests do not see each other.
start_network() {
    start slirp4netns --target-type=bess "$work/network"
    await_socket "$work/network" slirp4netns
    uml_network=vec0:transport=bess,dst=$work/network,mac=52:54:00:12:34:56
}

uml_network="" more="" kernel=uml
case $disk in
    network)
        start_network
        more=initiator
        set -- disk= "$@"
        ;;
    nbd:*)
        start_network
        more=nbd
        set -- disk=/dev/nbd0 nbd="${disk#nbd:}" "$@"
        ;;
    vhost:*)
        start python3 "$here/vhost_relay.py" "$work/relay" "${disk#vhost:}"
        await_socket "$work/relay" vhost_relay.py
        set -- disk=/dev/vda "$@"
        ;;
    ubd:*) set -- disk=/dev/ubda "$@" ;;
    nvme:*)
        kernel=qemu
        set -- disk=/dev/nvme0n1 "$@"
        ;;
    *)
        kernel=qemu
        set -- disk=/dev/vda "$@"
        ;;
esac

if [ $kernel = uml ]; then
    compose "$work/initramfs" "$folder" initramfs.uml "$script" "$more" "$@"
    # Its memory is a file that is unlinked at once, best in memory where there is enough of it.
    memory=/dev/shm
    [ "$(df -Pm $memory 2>/dev/null | awk 'NR == 2 {print $4}')" -gt $((mib + 128)) ] 2>/dev/null ||
        memory=${TMPDIR:-/tmp}
    # shellcheck disable=SC2016  # for the inner shell
    set -- env TMPDIR="$memory" LD_PRELOAD="$folder/xstate.so" sh -c 'echo $$ >"$0"; exec "$@"' "$work/uml.pid" \
        "$folder/linux.uml" "mem=${mib}M" initrd="$work/initramfs" uml_dir="$work" umid=uml \
        con=null con0=null,fd:1 ssl=null quiet panic=-1
    [ -z "$uml_network" ] || set -- "$@" "$uml_network"
    case $disk in
        vhost:*) set -- "$@" "virtio_uml.device=$work/relay:2" ;;
        ubd:*)
            letter=0
            for file in $(echo "${disk#ubd:}" | tr , ' '); do
                set -- "$@" "ubd$letter=$file"
                letter=$((letter + 1))
            done
            ;;
    esac
    # shellcheck disable=SC2086  # words
    set -- "$@" ${GUEST_LINE:-}
else
    compose "$work/initramfs" "$folder" initramfs "$script" "$more" "$@"
    cores=2
    set -- -kernel "$folder/vmlinuz" -initrd "$work/initramfs" -append "$guest_line ${GUEST_LINE:-}"
    case $disk in
        iscsi://*)
            make_bootable "$work/boot.img" "$folder/vmlinuz" "$work/initramfs"
            qemu-img convert -n -f raw -O raw "$work/boot.img" "$disk"
            set -- -drive "file=$disk,format=raw,if=virtio,cache=none"
            # A second core would spin in the firmware.
            cores=1
            ;;
        nvme:*)
            # Its memory lies in two nodes, with a core each.
            half=$((mib / 2))
            set -- "$@" -object "memory-backend-ram,id=near,size=${half}M" \
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
            set -- "$@" -object "memory-backend-memfd,id=memory,size=${mib}M,share=on" \
                -numa node,memdev=memory -chardev "socket,id=disk,path=$disk,reconnect=1" \
                -device vhost-user-blk-pci,chardev=disk,num-queues=2
            ;;
    esac
    # All that it emulates but what costs more than it gives: instructions that copy byte by byte, and a fifth level of pages.
    emulated=max,-erms,-fsrm,-la57
    set -- qemu-system-x86_64 -machine q35,accel=tcg -cpu "$emulated" -smp "$cores" -m "$mib" -no-reboot -nodefaults "$@" \
        -display none -monitor none -serial stdio
fi

mkfifo "$work/console"
tee "$work/log" <"$work/console" &
reader=$!
code=0
timeout -k 5 "$limit" "$@" </dev/null >"$work/console" 2>&1 &
guest=$!
children="$children $guest"
wait "$guest" || code=$?
kill_group
wait "$reader"
if grep -q '^GUEST-PASSED' "$work/log"; then
    exit 0
fi
if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
    echo "error: guest $name did not end within $limit s" >&2
else
    echo "error: guest $name failed (its kernel's program ended with $code)" >&2
fi
[ ! -s "$work/helpers.log" ] || tail -n 20 "$work/helpers.log" >&2
exit 1
