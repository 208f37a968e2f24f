#!/usr/bin/env bash
# Builds a container image of the programs, without a container engine, with the options of stage.sh:
# packaging/build-oci.sh --help. It contains the packaged files and the C library that the programs are linked with, of
# this Debian or Ubuntu; for another architecture, of its packages libc6, libgcc-s1 and gcc-12-base, unpacked into the
# folder CONVECT_LIBRARIES (dpkg-deb -x). There is no shell in it.
set -Eeuo pipefail
# shellcheck source=packaging/stage.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/stage.sh"
need readelf
prepare "$(target_dir)/oci" "$@"
libraries="$(realpath -m -- "${CONVECT_LIBRARIES:-/}")"

staged=$(mktemp -d)
trap 'rm -rf -- "$staged"' EXIT
stage "$staged" usr/share/zsh/site-functions
install -D -m 644 LICENSE "$staged/usr/share/licenses/convect/LICENSE"

loader=$(readelf -lW "$binaries/convect" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
for name in $(readelf -d "$binaries/convect" "$binaries/convect-lab" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u); do
  library=""
  for library in "$libraries"/{lib,usr/lib}/"$triple/$name"; do
    [ ! -f "$library" ] || break
  done
  [ -f "$library" ] || fail "the library $name for $architecture is not in $libraries (set CONVECT_LIBRARIES)"
  to=$staged/usr/lib/$triple/$name
  [ "$name" != "${loader##*/}" ] || to=$staged$loader
  install -D -m 755 "$library" "$to"
done
[ -f "$staged$loader" ] || install -D -m 755 "$libraries$loader" "$staged$loader"
for name in libc6 libgcc-s1; do
  install -D -m 644 "$libraries/usr/share/doc/$name/copyright" "$staged/usr/share/doc/$name/copyright"
done

# What the unit and the maintainer scripts of a package set up otherwise.
printf 'root:x:0:0:root:/root:/sbin/nologin\n' >"$staged/etc/passwd"
printf 'root:x:0:\n' >"$staged/etc/group"
install -d -m 750 "$staged/run/convect" "$staged/var/lib/convect"
install -d -m 700 "$staged/etc/convect/chap"
install -d "$staged/srv/convect"
install -d -m 1777 "$staged/tmp"

mkdir -p "$folder"
image=$folder/convect-$version-$architecture.oci.tar
python3 -B packaging/oci/layout.py "$staged" "$architecture" "$version" "$image"
echo "$image"
