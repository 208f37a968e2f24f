#!/usr/bin/env bash
# Makes a Debian package of the release build: the program and its laboratory, its unit, an example configuration,
# completions and manual pages. Usage: packaging/build-deb.sh [--profiled] [FOLDER]; the package is written to
# FOLDER (target/debian when left out) and its path printed. With --profiled the programs are compiled with a profile of two
# minutes of load (scripts/profiled.sh), which takes twice as long and gives a core a twentieth to a fifth more.
set -Eeuo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

fail() {
  echo "error: $*" >&2
  exit 1
}

for tool in cargo dpkg-deb gzip install; do
  command -v "$tool" >/dev/null || fail "$tool is missing: install it and try again"
done

target=${CARGO_TARGET_DIR:-target}
build=release
if [[ ${1:-} == --profiled ]]; then
  build=profiled
  shift
fi
folder=${1:-$target/debian}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[[ -n $version ]] || fail "Cargo.toml names no version"
architecture=$(dpkg --print-architecture)

case $build in
release) cargo build --release --locked -p convect-cli -p convect-lab --bin convect --bin convect-lab >&2 ;;
profiled)
  bash scripts/setup.sh profile >&2
  bash scripts/profiled.sh --locked >&2
  ;;
esac
program=$target/$build/convect

root=$(mktemp -d)
trap 'rm -rf -- "$root"' EXIT
chmod 755 "$root"

for name in convect convect-lab; do
  install -D -m 755 "$target/$build/$name" "$root/usr/bin/$name"
  strip --strip-unneeded "$root/usr/bin/$name" 2>/dev/null || true
done
install -D -m 644 packaging/convect.service "$root/usr/lib/systemd/system/convect.service"
install -D -m 644 packaging/convect.toml "$root/etc/convect/convect.toml"
install -D -m 644 docs/api/openapi.json "$root/usr/share/doc/convect/openapi.json"
install -D -m 644 docs/events.md "$root/usr/share/doc/convect/events.md"
install -D -m 644 packaging/prometheus/convect.rules.yml "$root/usr/share/convect/prometheus/convect.rules.yml"
install -D -m 644 packaging/grafana/convect.json "$root/usr/share/convect/grafana/convect.json"
if [[ -f LICENSE ]]; then
  install -D -m 644 LICENSE "$root/usr/share/doc/convect/copyright"
fi

complete() {
  install -d "$root/$(dirname "$2")"
  "$program" completions "$1" >"$root/$2"
}
complete bash usr/share/bash-completion/completions/convect
complete zsh usr/share/zsh/vendor-completions/_convect
complete fish usr/share/fish/vendor_completions.d/convect.fish

"$program" man "$root/usr/share/man/man1"
install -d "$root/usr/share/man/man5"
mv "$root/usr/share/man/man1/convect.toml.5" "$root/usr/share/man/man5/"
gzip -9n "$root"/usr/share/man/man1/*.1 "$root"/usr/share/man/man5/*.5

# What the program is linked with; the version is the one that it was built beside.
libc=$(dpkg-query -W -f '${Version}' libc6 2>/dev/null | sed 's/-.*//') || true
install -d "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<TXT
Package: convect
Version: $version
Architecture: $architecture
Maintainer: The Convect developers <convect@localhost>
Section: admin
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: libc6${libc:+ (>= $libc)}, libgcc-s1
Recommends: fuse3, ca-certificates, smartmontools
Description: hybrid storage for virtual machines and hosts
 Pools RAM, flash and disks, keeps every hot block on the fastest medium, and
 serves volumes by vhost-user-blk, NBD, FUSE and iSCSI.
TXT
echo /etc/convect/convect.toml >"$root/DEBIAN/conffiles"
install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm \
  "$root/DEBIAN/"

mkdir -p "$folder"
package=$folder/convect_${version}_${architecture}.deb
dpkg-deb --root-owner-group --build "$root" "$package" >&2
echo "$package"
