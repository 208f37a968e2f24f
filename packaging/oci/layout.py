"""Writes a folder as a container image: layout.py ROOT ARCHITECTURE VERSION FILE.tar

The file is an OCI image layout in a tar archive, which podman, skopeo and docker load. It has one layer, and the
same folder gives the same bytes: names in order, owner root, all times SOURCE_DATE_EPOCH.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
MEDIA = "application/vnd.oci.image"


def add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(data), EPOCH, 0o644
    archive.addfile(entry, io.BytesIO(data))


def layer(root: Path) -> bytes:
    """The folder as an uncompressed archive."""

    def normal(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = EPOCH
        return entry

    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            archive.add(path, str(path.relative_to(root)), recursive=False, filter=normal)
    return data.getvalue()


def image(root: Path, architecture: str, version: str) -> dict[str, bytes]:
    """The files of the layout by name."""
    blobs = {}

    def store(kind: str, data: bytes) -> dict:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"{MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    created = datetime.fromtimestamp(EPOCH, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": "convect",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.created": created,
    }
    plain = layer(root)
    stored = store("layer.v1.tar+gzip", gzip.compress(plain, 6, mtime=0))
    config = {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/convect"],
            "Cmd": ["serve"],
            "Env": ["PATH=/usr/bin"],
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]},
        "history": [{"created": created, "created_by": "packaging/build-oci.sh"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.manifest.v1+json",
        "config": store("config.v1+json", json.dumps(config).encode()),
        "layers": [stored],
        "annotations": labels,
    }
    entry = store("manifest.v1+json", json.dumps(manifest).encode())
    entry["platform"] = {"architecture": architecture, "os": "linux"}
    entry["annotations"] = {
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": f"localhost/convect:{version}",
    }
    index = {"schemaVersion": 2, "mediaType": f"{MEDIA}.index.v1+json", "manifests": [entry]}
    return {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()} | blobs


if __name__ == "__main__":
    folder, architecture, version, file = sys.argv[1:]
    with tarfile.open(file, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in image(Path(folder), architecture, version).items():
            add(archive, name, data)
