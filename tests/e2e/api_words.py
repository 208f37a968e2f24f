# What the fuzzer of the interface puts in place of most of its random words: names of things that are there, so that
# more than the first look at a name is tried. Which it takes follows from the random word alone, so that what fails
# fails again. Read by scripts/fuzz-api.sh.
import os
import zlib

import schemathesis

WORK = os.environ["CONVECT_FUZZ_WORK"]
POOLS = ["tank", "tank", "lake", "pond"]
VOLUMES = ["disk", "web", "copy", "fresh"]
SNAPSHOTS = ["monday", "tuesday", "sunday"]
DRIVES = [f"file:{WORK}/spare-{n}?size=64M" for n in range(4)] + [
    f"model:hdd-7200,seed=1:file:{WORK}/spare-5?size=64M",
    f"ram:spare?size=64M",
    f"file:{WORK}/there-is-none/a",
    "null:spare?size=1G",
]
SIZES = [0, 1, 4096, 65536, 1 << 20, 32 << 20, 1 << 40, (1 << 64) - 1]
WORDS = {
    "pool": POOLS,
    "volume": VOLUMES + [f"disk@{name}" for name in SNAPSHOTS],
    "volumes": VOLUMES,
    "snapshot": SNAPSHOTS,
    "schedule": ["hourly", "daily"],
    "policy": ["mission-critical", "5", "gold", "none"],
    "export": ["tank-disk", "lake-disk", "fresh"],
    "token": ["fresh"],
    "name": VOLUMES + SNAPSHOTS + ["pond", "hourly"],
    "from": SNAPSHOTS + ["disk@monday"],
    "to": SNAPSHOTS,
    "maps": ["tank/disk", "lake/web,tank/disk", "tank/none"],
    "kind": ["nbd", "iscsi", "vhost-user-blk", "fuse"],
    "listen": [f"unix:{WORK}/fresh.sock", "127.0.0.1:0"],
    "path": [f"{WORK}/fresh-vub.sock"],
    "drive": DRIVES,
    "drives": DRIVES,
    "spec": DRIVES,
    "old": DRIVES,
    "new": DRIVES,
    "vdrive": [1, 2, 3],
    "job": list(range(1, 30)),
    "cells": [1, 64, 65536],
    "looks": [1],
    "size": SIZES,
    "length": SIZES,
    "start": SIZES,
    "offset": SIZES,
    "quota": SIZES,
    "reservation": SIZES,
    "fast_floor": SIZES,
    "fast_ceiling": SIZES,
    "wait_s": [0],
}


def chosen(name, value, at_all=False):
    """The word for a value, or the value itself: of a text or a number one in four stays random."""
    digest = zlib.crc32(repr(value).encode(errors="replace"))
    words = WORDS.get(name)
    if not words or (digest % 4 == 0 and not at_all):
        return value
    return words[digest // 4 % len(words)]


def changed(name, value):
    if isinstance(value, dict):
        if name == "parameters" and not value:
            return {"listen": WORDS["listen"][0]}
        return {key: changed(key, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [changed(name, inner) for inner in value]
    kinds = {type(word) for word in WORDS.get(name, [])}
    return chosen(name, value) if type(value) in kinds else value


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.operation.definition.raw.get("operationId") == "Live" and isinstance(case.query, dict):
        # It would not end by itself.
        case.query["looks"] = 1
    for place in ("path_parameters", "query"):
        values = getattr(case, place)
        if isinstance(values, dict):
            for key, value in list(values.items()):
                values[key] = changed(key, value)
    if isinstance(case.body, (dict, list)):
        case.body = changed("", case.body)
