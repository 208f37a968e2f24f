"""Converts CHANGELOG.md, read from standard input, to Debian's changelog: changelog.py VERSION RELEASE MAINTAINER.

An entry is a heading `## VERSION, DATE`. The one of a version that is not released yet has the time
SOURCE_DATE_EPOCH, which is the last commit's; VERSION must have an entry.
"""

import os
import re
import sys
import textwrap
from datetime import UTC, datetime
from email.utils import format_datetime


def plain(text: str) -> str:
    """Markdown without links and code marks."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "")


def body(lines: list[str]) -> str:
    """Sections in brackets, each item as a bullet of at most 79 columns."""
    bullet = textwrap.TextWrapper(79, initial_indent="  * ", subsequent_indent="    ", break_on_hyphens=False)
    written = ""
    # A section's name is one line; an item goes on to the next item, section or empty line.
    for block in re.split(r"\n\n|\n(?=- |### )", re.sub(r"(?m)^(### .*)$", r"\1\n", "\n".join(lines)).strip()):
        text = plain(" ".join(block.split()))
        if text.startswith("### "):
            written += f"\n  [ {text[4:]} ]\n"
        elif text:
            written += bullet.fill(text.removeprefix("- ")) + "\n"
    return written


def entries(text: str):
    """Version, date and lines of each entry, the newest first."""
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, *lines = part.splitlines()
        version, _, date = heading.partition(",")
        yield version.strip(), date.strip(), lines


def main(version: str, release: str, maintainer: str) -> None:
    found = list(entries(sys.stdin.read()))
    if version not in [entry[0] for entry in found]:
        raise SystemExit(f"error: CHANGELOG.md has no entry of version {version}")
    for name, date, lines in found:
        if date == "unreleased":
            time = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
        else:
            time = datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
        print(f"convect ({name}-{release}) stable; urgency=medium")
        print(body(lines))
        print(f" -- {maintainer}  {format_datetime(time)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
