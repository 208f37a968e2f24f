#!/bin/sh
# Makes the guest that the end-to-end tests boot: the kernel of Debian's cloud image and an
# initramfs with busybox, e2fsprogs and the drivers of a virtio disk; and `initiator`, an archive to
# follow it, with open-iscsi, multipath-tools and sg3-utils. Those three are not installed here, where
# their services would start.
#
#   tests/guest/build.sh [FOLDER]
#
# FOLDER defaults to ${XDG_CACHE_HOME:-$HOME/.cache}/convect/guest and holds `vmlinuz`, `initramfs`
# and `initiator` afterwards. Nothing is done when they are there and newer than this script.
# Needs the packages busybox-static, cpio, kmod, e2fsprogs and apt's package lists.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/programs.sh"
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/convect/guest}
meta=linux-image-cloud-amd64

fail() {
    echo "error: $*" >&2
    exit 1
}

fresh() {
    [ -s "$folder/vmlinuz" ] && [ -s "$folder/initiator" ] &&
        [ "$folder/initramfs" -nt "$here/build.sh" ] &&
        [ "$folder/initramfs" -nt "$here/init" ] &&
        [ "$folder/initramfs" -nt "$here/initiator" ] &&
        [ "$folder/initramfs" -nt "$here/programs.sh" ]
}

fresh && exit 0
PATH=$PATH:/usr/sbin:/sbin
for tool in busybox cpio depmod modprobe mkfs.ext4 e2fsck resize2fs dpkg-deb apt-get; do
    command -v "$tool" >/dev/null ||
        fail "$tool is missing: apt-get install busybox-static cpio kmod e2fsprogs"
done
[ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 ||
    fail "busybox is not static: apt-get install busybox-static"

mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# The meta package depends on the kernel package of the day.
package=$(apt-cache depends "$meta" 2>/dev/null |
    sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
[ -n "$package" ] ||
    fail "apt knows no $meta: run apt-get update first (on Debian; other systems are not served)"
mkdir "$work/download" "$work/kernel"
# apt drops its rights for downloads and must be able to write here.
chmod 777 "$work" "$work/download"
# What the initiator is made of: its programs, and the libraries that come with nothing else here.
initiator_packages="open-iscsi libisns0 libopeniscsiusr multipath-tools libaio1 liburcu8 libjson-c5
    libedit2 libbsd0 libmd0 libdevmapper1.02.1 sg3-utils libsgutils2-1.46-2"
# shellcheck disable=SC2086  # names
(cd "$work/download" && apt-get -q download "$package" $initiator_packages >&2) ||
    fail "cannot download $package and its initiator: run apt-get update, or look at the network"
dpkg-deb -x "$work/download/$package"*.deb "$work/kernel"
version=${package#linux-image-}
depmod -b "$work/kernel" "$version"

root=$work/root
mkdir -p "$root/bin" "$root/sbin" "$root/dev" "$root/proc" "$root/sys" "$root/mnt" \
    "$root/etc" "$root/tmp" "$root/lib/modules/$version"
cp /bin/busybox "$root/bin/busybox"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
: >"$root/etc/mtab"

take_programs "$root" mkfs.ext4 e2fsck resize2fs
[ ! -e /etc/mke2fs.conf ] || cp /etc/mke2fs.conf "$root/etc/"

# Takes drivers along; prints them in the order in which they have to be loaded.
drivers() {
    for module in "$@"; do
        modprobe -d "$work/kernel" -S "$version" --show-depends "$module" 2>/dev/null |
            sed -n 's/^insmod //p'
    done | awk '!seen[$1]++ {print $1}' | while read -r module; do
        name=$(basename "$module")
        cp "$module" "$root/lib/modules/$version/$name"
        echo "/lib/modules/$version/$name"
    done
}
drivers virtio_pci virtio_blk crc32c_generic ext4 >"$root/etc/modules"
# For thin.sh, which loads them itself.
drivers dm-thin-pool >"$root/etc/modules.thin"

# For the initiator's script, which loads them itself.
drivers virtio_net iscsi_tcp sd_mod sg dm-multipath dm-service-time >"$root/etc/modules.initiator"

initiator=$work/initiator-root
mkdir "$initiator"
for name in $initiator_packages; do
    dpkg-deb -x "$work/download/$name"_*.deb "$initiator"
done
(cd "$initiator" && rm -rf usr/share usr/include etc/init.d lib/udev lib/systemd usr/lib/tmpfiles.d)
take_libraries_of_all "$initiator"
printf 'root:x:0:0:root:/:/bin/sh\n' >"$initiator/etc/passwd"
cp "$here/initiator" "$initiator/initiator"
(cd "$initiator" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initiator"

(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initramfs"
mv "$work/initiator" "$folder/initiator"
cp "$work/kernel/boot/vmlinuz-$version" "$folder/vmlinuz"
mv "$work/initramfs" "$folder/initramfs"
echo "guest: $package in $folder" >&2
