#!/usr/bin/env bash
# Puts Debian packages into an apt repository, a folder that any web server can serve, and writes its indexes:
# build-apt.sh [--key KEY] FOLDER PACKAGE.deb...
# With --key the repository is signed by that secret key of gpg, whose public part is written to FOLDER/convect.asc.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/common.sh"
umask 022

usage="usage: packaging/build-apt.sh [--key KEY] FOLDER PACKAGE.deb..."
key=""
if [ "${1:-}" = --key ]; then
  key="${2:?$usage}"
  shift 2
fi
case "${1:-}" in '' | -*) fail "$usage" ;; esac
[ $# -gt 1 ] || fail "$usage"
folder=$1
shift
for tool in dpkg-deb dpkg-scanpackages gzip ${key:+gpg}; do
  command -v "$tool" >/dev/null || fail "$tool is missing: install it and try again"
done

pool=pool/main/c/convect
mkdir -p "$folder/$pool"
for package in "$@"; do
  # Indexes are made by these names.
  # shellcheck disable=SC2016  # dpkg-deb's variables
  name="$(dpkg-deb --show --showformat='${Package}_${Version}_${Architecture}.deb' "$package")"
  case "$name" in convect_*_amd64.deb | convect_*_arm64.deb) ;; *) fail "$package is not a package of convect" ;; esac
  there="$folder/$pool/$name"
  # Clients may have the old one's checksum already.
  [ ! -e "$there" ] || cmp -s "$package" "$there" ||
    fail "$there exists with other contents: a changed package needs a higher version"
  install -m 644 "$package" "$there"
done

cd "$folder"
new=$(mktemp -d ./new.XXXXXX)
trap 'rm -rf -- "$new"' EXIT
stable=$new/dists/stable
for architecture in amd64 arm64; do
  index=$stable/main/binary-$architecture
  mkdir -p "$index"
  dpkg-scanpackages --multiversion --arch "$architecture" "$pool" >"$index/Packages" 2>"$new/log" ||
    fail "$(cat "$new/log")"
  gzip -9nk "$index/Packages"
done
{
  echo "Origin: Convect"
  echo "Label: Convect"
  echo "Suite: stable"
  echo "Codename: stable"
  echo "Date: $(date -u -R ${SOURCE_DATE_EPOCH:+-d "@$SOURCE_DATE_EPOCH"})"
  echo "Architectures: amd64 arm64"
  echo "Components: main"
  echo "Description: packages of Convect"
  echo "SHA256:"
  (cd "$stable" && find main -type f | sort | while read -r file; do
    printf ' %s %s %s\n' "$(sha256sum "$file" | cut -d' ' -f1)" "$(stat -c %s "$file")" "$file"
  done)
} >"$new/Release"
mv "$new/Release" "$stable/Release"
if [ -n "$key" ]; then
  gpg --batch --local-user "$key" --clearsign --output "$stable/InRelease" "$stable/Release"
  gpg --batch --local-user "$key" --armor --detach-sign --output "$stable/Release.gpg" "$stable/Release"
  gpg --batch --armor --export "$key" >convect.asc
fi
# Clients see the old indexes or the new ones.
mkdir -p dists
[ ! -e dists/stable ] || mv dists/stable "$new/old"
mv "$stable" dists/stable

here=$(pwd)
echo "repository: $here"
if [ -n "$key" ]; then
  echo "deb [signed-by=/etc/apt/keyrings/convect.asc] file:$here stable main"
else
  echo "not signed, for tests only (--key KEY signs it):"
  echo "deb [trusted=yes] file:$here stable main"
fi
