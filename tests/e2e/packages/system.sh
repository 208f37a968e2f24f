#!/usr/bin/env bash
# For packages.sh: system.sh VERSION, in a mount namespace and a folder of its own, runs inside.sh in the system that is
# run here; what it changes goes to memory and is forgotten. Its folder is /mnt there.
set -Eeuo pipefail
mkdir system
mount -t tmpfs tmpfs system
mkdir system/changes system/work system/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/system/changes,workdir=$PWD/system/work" system/root
mount --rbind /dev system/root/dev
mount -t proc proc system/root/proc
mount --bind . system/root/mnt
# systemd seems to run, and what it is asked is noted.
mkdir -p system/root/run/systemd/system system/root/tmp
: >system/root/changes-are-forgotten
rm -f system/root/usr/bin/systemctl
printf '#!/bin/sh\necho "$*" >>/systemctl.log\n' >system/root/usr/bin/systemctl
chmod 755 system/root/usr/bin/systemctl
rm -f system/root/var/lib/man-db/auto-update system/root/usr/sbin/policy-rc.d
exec chroot system/root /bin/bash /mnt/inside.sh "$1"
