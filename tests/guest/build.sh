#!/bin/sh
# Builds the guests that the end-to-end tests boot. Two kernels of Debian's share a root of busybox and e2fsprogs: the
# cloud image's, for QEMU, and User Mode Linux, which runs as a program of this machine and needs no emulation. Two
# archives can follow the root: `initiator` with open-iscsi, multipath-tools and sg3-utils, and `nbd` with nbd-client
# and Python. All of these are unpacked from Debian's packages and not installed here, where their services would start.
#
#   tests/guest/build.sh [FOLDER]
#
# FOLDER defaults to ${XDG_CACHE_HOME:-$HOME/.cache}/convect/guest and holds these files afterwards:
#
#   vmlinuz, initramfs         for QEMU
#   linux.uml, initramfs.uml   for User Mode Linux
#   xstate.so                  to be preloaded to it, so that it runs on any processor (xstate.c)
#   initiator, nbd             archives to follow initramfs.uml
#
# Nothing is done when they are there and made by these scripts, as `made-by` beside them says: of a fresh clone every file
# is new. The archives are not compressed: unpacking them is slow where the processor is emulated, and nothing is gained
# where it is not.
# Needs the packages busybox-static, cpio, kmod, e2fsprogs, gcc and apt's package lists.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/programs.sh"
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/convect/guest}
meta=linux-image-cloud-amd64

fail() {
    echo "error: $*" >&2
    exit 1
}

scripts=$(cd "$here" && cat build.sh xstate.c init network steps initiator nbd nbd_attach.py programs.sh | sha256sum)
fresh() {
    for file in vmlinuz linux.uml xstate.so initramfs.uml initiator nbd; do
        [ -s "$folder/$file" ] || return 1
    done
    [ "$(cat "$folder/made-by" 2>/dev/null)" = "$scripts" ]
}

fresh && exit 0
mkdir -p "$folder"
# Guests that start side by side build once.
exec 9>"$folder/lock"
flock 9
fresh && exit 0
PATH=$PATH:/usr/sbin:/sbin
for tool in busybox cpio depmod modprobe mkfs.ext4 e2fsck resize2fs dpkg-deb apt-get cc; do
    command -v "$tool" >/dev/null ||
        fail "$tool is missing: apt-get install busybox-static cpio kmod e2fsprogs gcc"
done
[ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 ||
    fail "busybox is not static: apt-get install busybox-static"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# The meta package depends on the kernel package of the day.
package=$(apt-cache depends "$meta" 2>/dev/null |
    sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
[ -n "$package" ] ||
    fail "apt knows no $meta: run apt-get update first (on Debian; other systems are not served)"
mkdir "$work/download" "$work/kernel" "$work/uml"
# apt drops its rights for downloads and must be able to write here.
chmod 777 "$work" "$work/download"
# What the archives are made of: programs, and the libraries that come with nothing else here.
initiator_packages="open-iscsi libisns0 libopeniscsiusr multipath-tools libaio1 liburcu8 libjson-c5
    libedit2 libbsd0 libmd0 libdevmapper1.02.1 sg3-utils libsgutils2-1.46-2"
nbd_packages="nbd-client libnl-3-200 libnl-genl-3-200 python3.11-minimal libpython3.11-minimal"
# shellcheck disable=SC2086  # names
(cd "$work/download" &&
    apt-get -q download "$package" user-mode-linux $initiator_packages $nbd_packages >&2) ||
    fail "cannot download $package, user-mode-linux and their programs: run apt-get update, or look at the network"
unpack() { # PACKAGE TO
    dpkg-deb -x "$work/download/$1"_*.deb "$2"
}
archive() { # ROOT OUT
    (cd "$1" && find . | cpio -o -H newc --quiet) >"$2"
}

unpack "$package" "$work/kernel"
version=${package#linux-image-}
depmod -b "$work/kernel" "$version"
unpack user-mode-linux "$work/uml"
mkdir -p "$work/uml/lib/modules"
mv "$work"/uml/usr/lib/uml/modules/* "$work/uml/lib/modules/"
uml_version=$(ls "$work/uml/lib/modules")
depmod -b "$work/uml" "$uml_version"

root=$work/root
mkdir -p "$root/bin" "$root/sbin" "$root/dev" "$root/proc" "$root/sys" "$root/mnt" "$root/etc" "$root/tmp"
cp /bin/busybox "$root/bin/busybox"
cp "$here/init" "$here/network" "$here/steps" "$root/"
chmod 755 "$root/init"
: >"$root/etc/mtab"
take_programs "$root" mkfs.ext4 e2fsck resize2fs
[ ! -e /etc/mke2fs.conf ] || cp /etc/mke2fs.conf "$root/etc/"
archive "$root" "$work/base"

# Puts drivers of a kernel into a root; prints them in the order in which they have to be loaded.
drivers() { # ROOT KERNEL VERSION DRIVER...
    to=$1 kernel=$2 of=$3
    shift 3
    mkdir -p "$to/lib/modules/$of"
    for module in "$@"; do
        modprobe -d "$kernel" -S "$of" --show-depends "$module" 2>/dev/null |
            sed -n 's/^insmod //p'
    done | awk '!seen[$1]++ {print $1}' | while read -r module; do
        name=$(basename "$module")
        cp "$module" "$to/lib/modules/$of/$name"
        echo "/lib/modules/$of/$name"
    done
}
cloud=$work/cloud-root
mkdir -p "$cloud/etc"
drivers "$cloud" "$work/kernel" "$version" virtio_pci virtio_blk crc32c_generic ext4 >"$cloud/etc/modules"
# For thin.sh, which loads them itself.
drivers "$cloud" "$work/kernel" "$version" dm-thin-pool >"$cloud/etc/modules.thin"
archive "$cloud" "$work/cloud"
cat "$work/base" "$work/cloud" >"$work/initramfs"

uml=$work/uml-root
mkdir -p "$uml/etc"
drivers "$uml" "$work/uml" "$uml_version" virtio_blk >"$uml/etc/modules"
# For scripts, which load them themselves.
drivers "$uml" "$work/uml" "$uml_version" iscsi_tcp sd_mod sg dm-multipath dm-service-time >"$uml/etc/modules.initiator"
drivers "$uml" "$work/uml" "$uml_version" nbd >"$uml/etc/modules.nbd"
archive "$uml" "$work/uml-drivers"
cat "$work/base" "$work/uml-drivers" >"$work/initramfs.uml"

# Unpacks packages into a root, with the libraries that they need, and adds a script: programs ROOT SCRIPT PACKAGE...
programs() {
    to=$1 script=$2
    shift 2
    mkdir "$to"
    for name in "$@"; do
        unpack "$name" "$to"
    done
    (cd "$to" && rm -rf usr/share usr/include etc/init.d lib/udev lib/systemd usr/lib/tmpfiles.d)
    take_libraries_of_all "$to"
    mkdir -p "$to/etc"
    printf 'root:x:0:0:root:/:/bin/sh\n' >"$to/etc/passwd"
    cp "$here/$script" "$to/$script"
}
# shellcheck disable=SC2086  # names
programs "$work/initiator-root" initiator $initiator_packages
archive "$work/initiator-root" "$work/initiator"
# shellcheck disable=SC2086  # names
programs "$work/nbd-root" nbd $nbd_packages
cp "$here/nbd_attach.py" "$work/nbd-root/nbd_attach.py"
archive "$work/nbd-root" "$work/nbd"

cp "$work/kernel/boot/vmlinuz-$version" "$work/vmlinuz"
cp "$work/uml/usr/bin/linux.uml" "$work/linux.uml"
cc -O2 -Wall -Wextra -shared -fPIC -o "$work/xstate.so" "$here/xstate.c"
rm -f "$folder/made-by"
for file in vmlinuz linux.uml xstate.so initramfs.uml initiator nbd initramfs; do
    mv "$work/$file" "$folder/$file"
done
echo "$scripts" >"$folder/made-by"
echo "guest: $package and User Mode Linux $uml_version in $folder" >&2
