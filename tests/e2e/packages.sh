#!/usr/bin/env bash
# The packages as an administrator's tools see them: contents and metadata, the same bytes when built again, a complete
# bill of materials, and installing, upgrading and removing.
# timeout: 120
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH="$(git -C "$root" log -1 --format=%ct)"
version="$(convect --version | cut -d' ' -f2)"

# Programs of a few kilobytes take the place of the real ones where only the packaging is tested.
mkdir stub foreign
cp /bin/true stub/convect
cp /bin/true stub/convect-lab
# The same for another processor, by the machine's number in the header.
for name in convect convect-lab; do
  cp "stub/$name" "foreign/$name"
  printf '\xb7\x00' | dd of="foreign/$name" bs=1 seek=18 conv=notrunc status=none
done
package() { # FORMAT ARG...
  bash "$root/packaging/build-$1.sh" --local "$CONVECT_BIN/convect" "${@:2}"
}

say "the same programs give the same package"
deb="$(package deb --binaries stub one)"
[ "$deb" = "$work/one/convect_$version-1_amd64.deb" ] || fail "the package is $deb"
cp "$deb" first.deb
touch stub/convect
package deb --binaries stub one
cmp first.deb "$deb"

say "programs for another processor, or of no version, are refused"
package deb --binaries foreign two 2>said && fail "a foreign program was packaged"
grep -q 'foreign/convect is not a program for amd64' said || fail "$(cat said)"
bash "$root/packaging/build-deb.sh" --binaries stub two 2>said && fail "a program without a version was packaged"
grep -q 'but Cargo.toml says' said || fail "$(cat said)"
[ ! -e two ] || fail "something was packaged in spite of the error"
dpkg-deb -f "$(package deb --architecture arm64 --binaries foreign two)" Architecture | grep -qx arm64

say "metadata of the Debian package"
dpkg-deb -x "$deb" files
dpkg-deb -e "$deb" control
[ "$(cat control/conffiles)" = "$(cd files && find etc -type f -printf '/%p\n' | sort)" ] || fail "conffiles are wrong"
(cd files && md5sum --quiet -c ../control/md5sums)
[ -z "$(find files -newermt "@$((SOURCE_DATE_EPOCH + 1))")" ] || fail "a file is newer than the commit"
zcat files/usr/share/doc/convect/changelog.Debian.gz >changelog
dpkg-parsechangelog -l changelog -S Version | grep -qx "$version-1"
systemd-analyze verify --man=no files/usr/lib/systemd/system/convect.service 2>&1 |
  grep -v 'convect is not executable' >said || true
[ ! -s said ] || fail "$(cat said)"
printf 'profile guest {\n  include <abstractions/libvirt-qemu.d>\n}\n' >guest
apparmor_parser --skip-kernel-load --skip-cache --base files/etc/apparmor.d --stdout guest >/dev/null
lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$deb"

say "the bill of materials and the notices name everything that is linked"
python3 - "$root" files/usr/share/doc/convect "$CONVECT_BIN" <<'PY'
import json, re, sys, tomllib
root, documents, programs = sys.argv[1:]
bill = json.load(open(f"{documents}/convect.cdx.json"))
parts = {part["purl"]: part for part in bill["components"]}
assert len(parts) == len(bill["components"]), "a component is listed twice"
assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["name"] == "convect"
for part in parts.values():
    assert part["version"] and part["licenses"][0]["expression"], part
lock = {(p["name"], p["version"]): p for p in tomllib.load(open(f"{root}/Cargo.lock", "rb"))["package"]}
for part in parts.values():
    if part["purl"].startswith("pkg:cargo/"):
        locked = lock[part["name"], part["version"]]
        assert part["hashes"] == [{"alg": "SHA-256", "content": locked["checksum"]}], part
page = json.load(open(f"{root}/web/package.json"))["dependencies"]
assert set(page) <= {part["name"] for part in parts.values()}, "the page's packages"
refs = {bill["metadata"]["component"]["bom-ref"], *parts}
reached, waiting = set(), [bill["metadata"]["component"]["bom-ref"]]
needs = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
while waiting:
    ref = waiting.pop()
    if ref not in reached:
        reached.add(ref)
        waiting += needs[ref]
assert reached == refs, refs - reached
# Places of panics name the sources that a program was compiled from, whatever cargo says about it.
known = {f"{part['name']}-{part['version']}" for part in parts.values()}
notices = open(f"{documents}/copyright").read()
found = set()
for program in "convect", "convect-lab":
    data = open(f"{programs}/{program}", "rb").read()
    found |= {name.decode() for name in re.findall(rb"registry/src/[^/\0]+/([\w.+-]+)/", data)}
assert len(found) > 30, found
missing = found - known
assert not missing, f"linked, but not in the bill: {missing}"
for part in parts.values():
    if part["purl"].startswith("pkg:cargo/"):
        assert f"Files: vendor/{part['name']}-{part['version']}/*\n" in notices, part
used = set(re.findall(r"^License: (.*)", notices, re.M))
texts = {text.split("\n")[0] for text in re.findall(r"^License: (.*\n .*)", notices, re.M)}
for expression in used:
    for name in re.split(r" (?:or|and) ", expression):
        assert name in texts, f"no text of the license {name}"
print(f"{len(parts)} components, {len(found)} of them seen in the programs")
PY

say "a signed repository serves the package to apt, and nothing that was changed"
export GNUPGHOME="$work/gnupg"
mkdir -m 700 gnupg
defer "gpgconf --kill all"
gpg --batch --quiet --passphrase '' --quick-generate-key tester@example.com ed25519 sign never
apt_lists() { # SOURCE
  mkdir -p apt/lists/partial apt/cache/archives/partial
  echo "$1" >apt/sources.list
}
# apt with folders of its own, which sees this repository alone.
own_apt() {
  apt-get -o Dir::Etc::sourcelist="$work/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none "$@"
}
bash "$root/packaging/build-apt.sh" --key tester@example.com repository "$deb" two/*.deb
apt_lists "deb [arch=amd64 signed-by=$work/repository/convect.asc] file:$work/repository stable main"
own_apt -o APT::Update::Error-Mode=any update
own_apt install --simulate convect | grep -q "Inst convect ($version-1 Convect:stable" || fail "apt offers no package"
(mkdir download && cd download && own_apt download convect && cmp ./*.deb "$deb")
echo >>repository/dists/stable/main/binary-amd64/Packages
rm -r apt/lists repository/dists/stable/main/binary-amd64/Packages.gz
apt_lists "$(cat apt/sources.list)"
own_apt -o APT::Update::Error-Mode=any update >said 2>&1 && fail "apt took a changed index"
grep -q 'Hash Sum mismatch' said || fail "$(cat said)"
cp first.deb "two/${deb##*/}"
printf x >>"two/${deb##*/}"
bash "$root/packaging/build-apt.sh" repository "two/${deb##*/}" 2>said && fail "a package was replaced by another one"
grep -q 'needs a higher version' said || fail "$(cat said)"

say "without a key apt asks for trusted=yes"
bash "$root/packaging/build-apt.sh" unsigned "$deb" | grep -q 'trusted=yes'
rm -r apt/lists
apt_lists "deb file:$work/unsigned stable main"
own_apt -o APT::Update::Error-Mode=any update >said 2>&1 && fail "apt took an unsigned repository"
apt_lists "deb [trusted=yes] file:$work/unsigned stable main"
own_apt -o APT::Update::Error-Mode=any update
own_apt install --simulate convect | grep -q "Inst convect" || fail "apt offers no package"

say "the RPM package: the same bytes again, intact, signed, and refused when changed"
package rpm --architecture arm64 --binaries foreign two >said
rpm -qp --queryformat '%{ARCH}' "$(cat said)" | grep -qx aarch64
rpm="$(package rpm --binaries stub one)"
[ "$rpm" = "$work/one/convect-$version-1.x86_64.rpm" ] || fail "the package is $rpm"
cp "$rpm" first.rpm
package rpm --binaries stub one
cmp first.rpm "$rpm"
rpm -K "$rpm" | grep -q 'digests OK'
rpm -qp --queryformat '[%{FILEUSERNAME} %{FILEGROUPNAME}\n]' "$rpm" | sort -u | grep -qx 'root root'
[ "$(rpm -qpc "$rpm")" = /etc/convect/convect.toml ] || fail "configuration: $(rpm -qpc "$rpm")"
# The programs and documents of both formats are the same.
mkdir unpacked
rpm2cpio "$rpm" | (cd unpacked && cpio --quiet -id)
for name in usr/bin etc/convect usr/lib usr/share/convect usr/share/man; do diff -r "files/$name" "unpacked/$name"; done
for name in copyright convect.cdx.json; do cmp {files,unpacked}/usr/share/doc/convect/$name; done
rpmsign --define '__gpg /usr/bin/gpg' --define '_gpg_name tester@example.com' --addsign "$rpm"
rpm --dbpath "$work/rpmdb" --import repository/convect.asc
rpm --dbpath "$work/rpmdb" -K "$rpm" | grep -q 'digests signatures OK'
printf x | dd of="$rpm" bs=1 seek=100000 conv=notrunc status=none
rpm --dbpath "$work/rpmdb" -K "$rpm" && fail "a changed package is intact"

say "the container image: digests are right, and the programs run with the libraries in it alone"
CONVECT_LIBRARIES=/nonexistent package oci --binaries stub one 2>said && fail "an image without libraries was built"
grep -q 'set CONVECT_LIBRARIES' said || fail "$(cat said)"
image="$(package oci --binaries stub one)"
cp "$image" first.tar
package oci --binaries stub one
cmp first.tar "$image"
mkdir layout container
tar -xf "$(package oci --binaries "$CONVECT_BIN" two)" -C layout
python3 - layout layer.tar <<'PY'
import gzip, hashlib, json, sys
layout, output = sys.argv[1:]
def blob(entry):
    data = open(f"{layout}/blobs/{entry['digest'].replace(':', '/')}", "rb").read()
    assert len(data) == entry["size"] and hashlib.sha256(data).hexdigest() == entry["digest"].split(":")[1], entry
    return data
assert json.load(open(f"{layout}/oci-layout"))["imageLayoutVersion"] == "1.0.0"
[entry] = json.load(open(f"{layout}/index.json"))["manifests"]
manifest = json.loads(blob(entry))
config = json.loads(blob(manifest["config"]))
[layer] = manifest["layers"]
data = gzip.decompress(blob(layer))
assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(data).hexdigest()}"]
assert config["config"]["Entrypoint"] == ["/usr/bin/convect"] and config["architecture"] == entry["platform"]["architecture"]
open(output, "wb").write(data)
PY
tar -xf layer.tar -C container
[ "$(chroot container /usr/bin/convect --version)" = "convect $version" ] || fail "convect does not run in the image"
chroot container /usr/bin/convect-lab --help >said
[ "$(stat -c %a container/tmp container/run/convect container/etc/convect/chap | xargs)" = "1777 750 700" ] ||
  fail "modes of folders in the image"
cmp files/usr/share/doc/convect/copyright container/usr/share/doc/convect/copyright

say "installing, upgrading, removing and purging"
# A newer version of the same files.
dpkg-deb -R "$deb" newer
sed -i 's/^Version: .*/Version: 99.0-1/' newer/DEBIAN/control
dpkg-deb --root-owner-group -Zgzip --build newer newer.deb
bash "$root/packaging/build-apt.sh" unsigned newer.deb
# What a daemon leaves in its state folder, for the purge.
printf 'socket = "%s"\nstate_dir = "%s"\nlisten = "127.0.0.1:%s"\n' \
  "$CONVECT_SOCKET" "$work/state" "$(free_port)" >convect.toml
start_daemon
convect token create me --role admin >/dev/null
stop_daemon
cp "$root/tests/e2e/packages/inside.sh" .
unshare --mount bash "$root/tests/e2e/packages/system.sh" "$version-1"
