"""What the programs consist of besides Convect's own code: linked crates, and packages within the web page.

Read from the lock files and from the sources that cargo has fetched; nothing is downloaded. A crate is
listed when it is linked into `convect` or `convect-lab` for the architecture: no tests, no build
scripts, no procedural macros.
"""

import base64
import json
import re
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ["convect-cli", "convect-lab"]

LICENSE_FILE = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)", re.I)
NOTICE = re.compile(r"(Copyright|\(c\)|©)\s.*(\d{4}|authors|developers|contributors|affiliates)", re.I)
NOTICE_MARK = re.compile(r"^(Copyright\s*)?(\([cC]\)|©)?[\s,]*")
# The last is the holder of the license's own text.
TEMPLATE = re.compile(r"yyyy|<year>|notice|license|holder|owner|Free Software Foundation", re.I)


@dataclass
class Component:
    """One part: `hashes` by algorithm, `needs` are purls, `copyright` are lines of its license files."""

    name: str
    version: str
    license: str
    purl: str
    hashes: dict[str, str] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)
    copyright: list[str] = field(default_factory=list)
    own: bool = False
    # Where its sources are, as `cargo vendor --versioned-dirs` and `npm ci` place them.
    place: str = ""


def cargo(*words: str) -> str:
    return subprocess.run(
        ["cargo", *words, "--frozen"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def expression(text: str) -> str:
    """The SPDX expression; old crates separate alternatives by a slash."""
    return re.sub(r"\s*/\s*", " OR ", text)


def copyright_lines(folder: Path, authors: list[str], name: str) -> list[str]:
    """Notices of the license files, also of bundled sources; otherwise the authors. Templates are skipped."""
    lines = []
    for file in sorted(folder.rglob("*")):
        if not LICENSE_FILE.match(file.name) or not file.is_file():
            continue
        for line in file.read_text(errors="replace").splitlines():
            line = line.strip(" \t*#/;`")
            if NOTICE.match(line) and not TEMPLATE.search(line):
                lines.append(NOTICE_MARK.sub("", line).rstrip("., "))
    # A notice that continues on the next line has a year alone.
    lines = [line for line in lines if re.search(r"[A-Za-z]", line)]
    if not lines:
        lines = [re.sub(r"\s*<[^>]*>", "", author) for author in authors] or [f"The authors of {name}"]
    return list(dict.fromkeys(lines))


def crates(target: str) -> list[Component]:
    """Linked crates with checksums of Cargo.lock, by name and version."""
    selected = [word for program in PROGRAMS for word in ("-p", program)]
    tree = cargo(
        "tree", *selected, "--target", target, "-e", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"
    )
    linked = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))
    chosen = {}
    for package in metadata["packages"]:
        if (package["name"], "v" + package["version"]) in linked:
            chosen[package["id"]] = crate(package, checksums[package["name"], package["version"]])
    if len(chosen) != len(linked):
        raise SystemExit("error: cargo tree and cargo metadata differ in what is linked")
    for node in metadata["resolve"]["nodes"]:
        if node["id"] in chosen:
            chosen[node["id"]].needs = sorted(
                chosen[needed["pkg"]].purl
                for needed in node["deps"]
                if needed["pkg"] in chosen and any(kind["kind"] is None for kind in needed["dep_kinds"])
            )
    return sorted(chosen.values(), key=lambda component: (component.name, component.version))


def crate(package: dict, checksum: str | None) -> Component:
    name, version = package["name"], package["version"]
    own = package["source"] is None
    if not own and not package["license"]:
        raise SystemExit(f"error: the crate {name} {version} states no license")
    folder = Path(package["manifest_path"]).parent
    return Component(
        name=name,
        version=version,
        license=expression(package["license"]),
        purl=f"pkg:{'generic' if own else 'cargo'}/{name}@{version.replace('+', '%2B')}",
        hashes={"SHA-256": checksum} if checksum else {},
        copyright=[] if own else copyright_lines(folder, package["authors"], name),
        own=own,
        place=f"vendor/{name}-{version}",
    )


def standard_library() -> Component:
    """Rust's standard library, which is linked into each program."""
    toolchain = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    return Component(
        name="rust-std",
        version=toolchain,
        license="MIT OR Apache-2.0",
        purl=f"pkg:generic/rust-std@{toolchain}",
        copyright=["The Rust Project Developers"],
        place="rust/library",
    )


def page() -> list[Component]:
    """Packages that are bundled into the web page: what package-lock.json needs at run time."""
    lock = json.loads((ROOT / "web/package-lock.json").read_text())
    found = []
    for place, package in lock["packages"].items():
        if not place or package.get("dev") or package.get("optional"):
            continue
        name = place.removeprefix("node_modules/")
        algorithm, digest = package["integrity"].split("-", 1)
        if algorithm != "sha512":
            raise SystemExit(f"error: {name} has a checksum of an unknown kind: {algorithm}")
        found.append(
            Component(
                name=name,
                version=package["version"],
                license=expression(package["license"]),
                purl=f"pkg:npm/{name.replace('@', '%40')}@{package['version']}",
                hashes={"SHA-512": base64.b64decode(digest).hex()},
                copyright=[f"The authors of {name}"],
                place=f"web/node_modules/{name}",
            )
        )
    return found


def components(triple: str) -> list[Component]:
    """Everything, for an architecture like x86_64-linux-gnu."""
    machine, rest = triple.split("-", 1)
    return crates(f"{machine}-unknown-{rest}") + [standard_library()] + page()
