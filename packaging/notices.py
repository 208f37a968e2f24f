"""Prints the notices of the programs and of everything linked into them, in Debian's machine-readable
format (copyright-format 1.0): notices.py [--expression] TRIPLE, such as x86_64-linux-gnu. With
--expression it prints their licenses as one SPDX expression.

Distributing the programs requires the notices and texts of the licenses of their parts. A license
whose text is not in packaging/licenses is an error, so that a new dependency cannot be overlooked.
"""

import re
import sys

from components import ROOT, Component, components

FORMAT = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
APACHE = """The full text is in /usr/share/common-licenses/Apache-2.0 on Debian systems, and in
/usr/share/licenses/convect/LICENSE where the package comes in another format."""


def short(license: str) -> str:
    """An SPDX expression in this format's words, with its name of the MIT license."""
    license = license.replace(" OR ", " or ").replace(" AND ", " and ").replace(" WITH ", " with ")
    return re.sub(r"\bMIT\b", "Expat", license).replace("LLVM-exception", "LLVM exception")


def names(license: str) -> set[str]:
    """The licenses of an expression; an exception belongs to the license before it."""
    return set(re.split(r" (?:OR|AND) ", license))


def field(name: str, lines: list[str]) -> str:
    """A field with its continuation lines."""
    return f"{name}: " + "\n ".join(line if line.strip() else "." for line in lines) + "\n"


def paragraph(part: Component) -> str:
    files = f"Files: {part.place}/*\n"
    return files + field("Copyright", part.copyright) + field("License", [short(part.license)])


def text(license: str) -> str:
    body = ""
    for name in license.split(" WITH "):
        body += APACHE if name == "Apache-2.0" else read(name)
        body += "\n\n"
    lines = [short(license), *body.rstrip().splitlines()]
    return field("License", lines)


def read(name: str) -> str:
    file = ROOT / "packaging/licenses" / f"{name}.txt"
    if not file.is_file():
        raise SystemExit(f"error: a linked component has the license {name}: add its text as {file}")
    return file.read_text()


def print_expression(parts: list[Component]) -> None:
    # Alternatives in one order, so that each is named once.
    choices = (" OR ".join(sorted(part.license.split(" OR "))) for part in parts)
    others = set(choices) - {"Apache-2.0"}
    print(" AND ".join(["Apache-2.0", *(f"({one})" if " " in one else one for one in sorted(others))]))


def print_notices(parts: list[Component]) -> None:
    wanted = {"Apache-2.0"}.union(*(names(part.license) for part in parts))
    header = f"Format: {FORMAT}\nUpstream-Name: convect\n" + field(
        "Comment",
        [
            "The programs contain the components below. Their paths are those that",
            "`cargo vendor --versioned-dirs` and `npm ci` give to their sources.",
        ],
    )
    own = "Files: *\nCopyright: The Convect developers\nLicense: Apache-2.0\n"
    print("\n".join([header, own, *map(paragraph, parts), *map(text, sorted(wanted))]), end="")


if __name__ == "__main__":
    linked = [part for part in components(sys.argv[-1]) if not part.own]
    if sys.argv[1] == "--expression":
        print_expression(linked)
    else:
        print_notices(linked)
