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
