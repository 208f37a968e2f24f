#!/usr/bin/env bash
# Builds the Debian package of the programs, with the options of stage.sh: packaging/build-deb.sh --help.
set -Eeuo pipefail
# shellcheck source=packaging/stage.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"
need dpkg-deb
prepare "$(target_dir)/debian" "$@"
maintainer="${DEBFULLNAME:-The Convect developers} <${DEBEMAIL:-convect@localhost}>"

staged=$(mktemp -d)
trap 'rm -rf -- "$staged"' EXIT
stage "$staged" usr/share/zsh/vendor-completions
python3 -B packaging/changelog.py "$version" "$release" "$maintainer" <CHANGELOG.md |
  gzip -9n >"$staged/usr/share/doc/convect/changelog.Debian.gz"
install -D -m 644 packaging/debian/lintian-overrides "$staged/usr/share/lintian/overrides/convect"
install -D -m 644 packaging/apparmor/libvirt-qemu "$staged/etc/apparmor.d/abstractions/libvirt-qemu.d/convect"

install -d "$staged/DEBIAN"
# What dpkg compares the configuration of an administrator with at an upgrade.
(cd "$staged" && find etc -type f -printf '/%p\n' | sort) >"$staged/DEBIAN/conffiles"
(cd "$staged" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum) >"$staged/DEBIAN/md5sums"
cat >"$staged/DEBIAN/control" <<TXT
Package: convect
Version: $version-$release
Architecture: $architecture
Maintainer: $maintainer
Section: admin
Priority: optional
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$staged" | cut -f1)
Depends: libc6 (>= $(needed_glibc "$staged")), libgcc-s1, passwd
Recommends: fuse3, ca-certificates, smartmontools
Description: hybrid storage for virtual machines and hosts
 Pools RAM, flash and disks, keeps every hot block on the fastest medium, and
 serves volumes by vhost-user-blk, NBD, FUSE and iSCSI.
 .
 The daemon is managed with the command convect and a web page, which is part
 of it. Configuration, alert rules for Prometheus and a dashboard for Grafana
 are included.
TXT
install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$staged/DEBIAN/"

mkdir -p "$folder"
package=$folder/convect_$version-${release}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$staged" "$package" >&2
echo "$package"
