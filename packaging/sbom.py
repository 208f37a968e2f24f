"""Prints the bill of materials of the programs (CycloneDX 1.5, JSON): sbom.py TRIPLE, such as x86_64-linux-gnu.

The same commit gives the same bytes: the time is SOURCE_DATE_EPOCH, the serial number a hash of the rest.
"""

import json
import os
import sys
import tomllib
import uuid
from datetime import UTC, datetime

from components import PROGRAMS, ROOT, Component, components


def entry(component: Component) -> dict:
    written = {
        "type": "library",
        "bom-ref": component.purl,
        "name": component.name,
        "version": component.version,
        "licenses": [{"expression": component.license}],
        "purl": component.purl,
    }
    if component.hashes:
        written["hashes"] = [{"alg": name, "content": digest} for name, digest in component.hashes.items()]
    return written


def bill(triple: str) -> dict:
    parts = components(triple)
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    product = f"pkg:generic/convect@{workspace['version']}"
    # The programs' own crates, the standard library, and what the page bundles: the product needs them directly.
    direct = [part.purl for part in parts if part.name in PROGRAMS or not part.place.startswith("vendor/")]
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC).strftime(
                "%Y-%m-%dT%H:%M:%SZ"
            ),
            "component": {
                "type": "application",
                "bom-ref": product,
                "name": "convect",
                "version": workspace["version"],
                "licenses": [{"expression": workspace["license"]}],
                "purl": product,
                "properties": [{"name": "convect:architecture", "value": triple}],
            },
        },
        "components": [entry(part) for part in parts],
        "dependencies": [{"ref": product, "dependsOn": direct}]
        + [{"ref": part.purl, "dependsOn": part.needs} for part in parts],
    }
    digest = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return {"$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json", "serialNumber": f"urn:uuid:{digest}"} | content


if __name__ == "__main__":
    json.dump(bill(sys.argv[1]), sys.stdout, indent=1)
    print()
