#!/bin/sh
# Boots the guest with a vhost-user-blk disk and runs a script in it.
#
#   tests/guest/run.sh NAME SOCKET SCRIPT [KEY=VALUE]...
#
# NAME is for messages. SCRIPT is the name of a file in tests/guest/scripts; KEY=VALUE are
# variables that it sees. The guest's console goes to the standard output as it comes. Ends with 0
# when the script succeeded, and is bounded by GUEST_TIMEOUT seconds (default 180).
# GUEST_FOLDER is where build.sh put the guest.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 3 ]; then
    echo "usage: $0 NAME SOCKET SCRIPT [KEY=VALUE]..." >&2
    exit 2
fi
name=$1 socket=$2 script=$here/scripts/$3
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
mkdir "$work/root"
cp "$script" "$work/root/script"
for pair in "$@"; do
    printf "%s='%s'\n" "${pair%%=*}" "${pair#*=}"
done >"$work/root/parameters"
# The kernel unpacks archives that follow one another into the same root; the one that is not
# compressed comes first, since its length is a multiple of the alignment.
(cd "$work/root" && printf 'script\nparameters\n' | cpio -o -H newc --quiet) >"$work/script.cpio"
cat "$work/script.cpio" "$folder/initramfs" >"$work/initramfs"

mkfifo "$work/console"
tee "$work/log" <"$work/console" &
reader=$!
code=0
timeout -k 5 "${GUEST_TIMEOUT:-180}" qemu-system-x86_64 \
    -machine q35,accel=tcg -cpu max -smp 2 -m 512 \
    -object memory-backend-memfd,id=memory,size=512M,share=on -numa node,memdev=memory \
    -kernel "$folder/vmlinuz" -initrd "$work/initramfs" \
    -append "console=ttyS0 quiet panic=-1" -no-reboot \
    -chardev "socket,id=disk,path=$socket,reconnect=1" \
    -device vhost-user-blk-pci,chardev=disk,num-queues=2 \
    -nic none -display none -monitor none -serial stdio \
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
