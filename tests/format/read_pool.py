#!/usr/bin/env python3
"""Reads a pool from images of its drives: read_pool.py [--json] [--extract DIR] IMAGE...

Prints the name, the size and the SHA-256 of the content of each volume and snapshot. A second implementation of
docs/format.md, written from that page alone, to show that the page is whole and true. It writes
nothing, and ends with an error rather than with a guess.
"""

import argparse
import hashlib
import json
import os
import struct
import sys
import zlib

BLOCK = 4096
MIB = 1 << 20
DIRECTORY = 2**32 - 1
NODE, CHUNK, VOLUME = 1, 2, 3
LAYERS, PACKED = 1, 2


class Damage(Exception):
    """What lies on the drives is not what it should be."""


def crc_tables():
    first = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        first.append(value)
    tables = [first]
    for _ in range(7):
        tables.append([first[v & 255] ^ v >> 8 for v in tables[-1]])
    return tables


TABLES = crc_tables()
KNOWN_CRCS = {}


def crc32c(data):
    """CRC32C, eight bytes at a time; blocks that repeat are computed once."""
    key = bytes(data)
    if key in KNOWN_CRCS:
        return KNOWN_CRCS[key]
    t0, t1, t2, t3, t4, t5, t6, t7 = TABLES
    crc = 0xFFFFFFFF
    whole = len(key) // 8 * 8
    for low, high in struct.iter_unpack("<II", key[:whole]):
        low ^= crc
        crc = (
            t7[low & 255] ^ t6[low >> 8 & 255] ^ t5[low >> 16 & 255] ^ t4[low >> 24]
            ^ t3[high & 255] ^ t2[high >> 8 & 255] ^ t1[high >> 16 & 255] ^ t0[high >> 24]
        )
    for byte in key[whole:]:
        crc = t0[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    if len(KNOWN_CRCS) < 4096:
        KNOWN_CRCS[key] = crc
    return crc


assert crc32c(b"123456789") == 0xE3069283


def number(data, at, length):
    return int.from_bytes(data[at : at + length], "little")


def place(data, at):
    """(vdrive, block), or None."""
    bits = number(data, at, 6)
    return (bits >> 40, bits & (1 << 40) - 1) if bits else None


def bit(bitmap, index):
    return bitmap[index // 8] >> index % 8 & 1


class Drive:
    """An image file."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "rb")
        self.size = os.stat(path).st_size

    def read(self, offset, length):
        self.file.seek(offset)
        data = self.file.read(length)
        return data + bytes(length - len(data))

    def labels(self):
        """Whole labels, as (generation, header, description)."""
        end = self.size // MIB * MIB - 2 * MIB
        for at in (0, MIB, end, end + MIB):
            header = self.read(at, 128) if at >= 0 else b""
            if header[:7] != b"CONVECT":
                continue
            length = number(header, 12, 4)
            if length > MIB - 128:
                continue
            body = self.read(at + 128, length)
            if crc32c(header[12:] + body) == number(header, 8, 4):
                yield number(header, 40, 8), header, body


class Vdrive:
    """Parts under a layout. `read` yields a block from every part that may have it."""

    def __init__(self, kind, parts, drives, chunk_blocks=0):
        self.kind, self.parts, self.drives, self.step = kind, parts, drives, chunk_blocks

    def lies(self, block):
        """(part, block of the part) of a block of the vdrive."""
        if self.kind == "concat":
            for part in self.parts:
                if block < part["blocks"]:
                    return [(part, block)]
                block -= part["blocks"]
        elif self.kind == "mirror":
            if block < min(part["blocks"] for part in self.parts):
                return [(part, block) for part in self.parts]
        elif self.kind == "stripe":
            ordered = sorted(self.parts, key=lambda part: part["blocks"])
            reached = 0
            for index, part in enumerate(ordered):
                end = part["blocks"] // self.step * self.step
                if end <= reached:
                    continue
                width = len(ordered) - index
                if block < (end - reached) * width:
                    stripe, within = divmod(block, self.step)
                    row, column = divmod(stripe, width)
                    return [(ordered[index + column], reached + row * self.step + within)]
                block -= (end - reached) * width
                reached = end
        else:
            raise Damage(f"layout {self.kind!r} is not known")
        raise Damage(f"a place lies past the end of its vdrive (block {block})")

    def copies(self, block):
        for part, at in self.lies(block):
            drive = self.drives.get(part["drive"])
            if drive and not part.get("out", False):
                yield drive.read(part["offset"] + at * BLOCK, BLOCK)

    def read(self, block, crc):
        """The copy that has this checksum, or None."""
        return next((data for data in self.copies(block) if crc32c(data) == crc), None)


class Chunk:
    """Where the blocks of a chunk are."""

    def __init__(self, page=bytes(BLOCK)):
        self.home = place(page, 64)
        self.valid = [bit(page[72:104], block) for block in range(256)]
        self.crcs = list(struct.unpack_from("<256I", page, 128))
        self.slots = [place(page, 1152 + 6 * block) for block in range(256)]
        self.inherits = list(struct.unpack_from("<256I", page, 2688))

    def fork(self, epoch):
        """What a chunk of a layer above begins with."""
        fork = Chunk()
        for block in range(256):
            if self.slots[block] or self.valid[block]:
                fork.inherits[block] = epoch
            else:
                fork.inherits[block] = self.inherits[block]
        return fork

    def merge(self, upper):
        """Takes in the chunk of the layer above; False when that cannot be."""
        own = [block for block in range(256) if not upper.inherits[block]]
        kept = any(self.valid[block] for block in set(range(256)).difference(own))
        if upper.home and kept:
            return False
        for block in own:
            self.slots[block], self.crcs[block] = upper.slots[block], upper.crcs[block]
            self.valid[block], self.inherits[block] = upper.valid[block], 0
        if upper.home or not any(self.valid):
            self.home = upper.home
        return True


class Pool:
    def __init__(self, paths):
        drives = [Drive(path) for path in paths]
        found = [(label, drive) for drive in drives for label in drive.labels()]
        if not found:
            raise Damage("no image bears a label")
        generation, header, body = max((label for label, _ in found), key=lambda label: label[0])
        if header[7] != 1 or number(header, 32, 8) & ~(LAYERS | PACKED):
            raise Damage("the pool was made by a newer version")
        self.id = header[48:64]
        self.generation = generation
        self.exported = number(header, 80, 4) == 1
        if number(header, 32, 8) & PACKED:
            body = zlib.decompress(body)
        self.config = json.loads(body)
        by_id = {}
        for (_, label, _), drive in found:
            if label[48:64] == self.id:
                by_id[label[64:80][::-1].hex()] = drive
        self.layers = {layer["id"]: layer for layer in self.config.get("layers", [])}
        meta = self.config["meta"]
        self.vdrives = {0: Vdrive("mirror", meta["parts"], by_id)}
        for vdrive in self.config["vdrives"]:
            layout = vdrive["layout"]
            self.vdrives[vdrive["id"]] = Vdrive(
                layout["kind"], vdrive["parts"], by_id, layout.get("chunk_blocks", 0)
            )
        self.shards = [Shard(self, shard) for shard in range(self.config["shards"])]

    def block(self, where, crc):
        vdrive = self.vdrives.get(where[0])
        return vdrive.read(where[1], crc) if vdrive else None

    def volumes(self):
        """Name, size and layer of each volume and snapshot."""
        for volume in self.config["volumes"]:
            if volume.get("deleting", False):
                continue
            live = volume.get("next", 0) or volume.get("live", 0) or volume["id"]
            yield volume["name"], volume["size"], live
            for snapshot in self.config.get("snapshots", []):
                if snapshot["volume"] == volume["id"]:
                    name = f"{volume['name']}@{snapshot['name']}"
                    yield name, snapshot["size"], snapshot["layer"]

    def parent(self, layer):
        return self.layers.get(layer, {}).get("parent", 0)

    def epoch(self, layer):
        return self.layers[layer]["epoch"] if layer in self.layers else layer

    def root(self, layer):
        return self.layers[layer]["root"] if layer in self.layers else layer

    def content(self, size, layer):
        """A layer's chunks in order; None for one that is all zeroes."""
        for chunk in range(-(-size // MIB)):
            shard = self.shards[(chunk // 256 + self.root(layer)) % len(self.shards)]
            yield shard.content(layer, chunk)


class Shard:
    def __init__(self, pool, shard):
        self.pool, self.shard, self.meta = pool, shard, pool.vdrives[0]
        best = None
        for block in (1 + 2 * shard, 2 + 2 * shard):
            for data in self.meta.copies(block):
                if self.is_whole(data, b"CVCP") and number(data, 10, 2) == shard:
                    if number(data, 8, 2) != 1:
                        raise Damage("a checkpoint was made by a newer version")
                    if best is None or number(data, 32, 8) > number(best, 32, 8):
                        best = data
        if best is None:
            raise Damage(f"shard {shard} has no checkpoint")
        self.epoch, self.journal_from = number(best, 40, 8), number(best, 48, 8)
        self.maps = {}
        for key, ptr in self.leaves(DIRECTORY, best[64:76], 4, 0):
            page = self.page(ptr, VOLUME, 0, DIRECTORY, key)
            for chunk, where in self.leaves(key, page[64:76], 4, 0):
                self.maps[key, chunk] = Chunk(self.page(where, CHUNK, 0, key, chunk))
        self.replay()

    def is_whole(self, data, magic):
        return (
            data[:4] == magic
            and data[16:32] == self.pool.id
            and number(data, 4, 4) == crc32c(data[8:])
        )

    def page(self, ptr, kind, level, owner, key):
        where, crc = place(ptr, 0), number(ptr, 6, 4)
        data = self.pool.block(where, crc) if where[0] == 0 else None
        wanted = b"CVPG" + struct.pack("<BBHII", kind, level, 1, owner, key)
        if data is None or data[:16] != wanted:
            raise Damage(f"page {key} of tree {owner}, level {level}, is damaged")
        return data

    def leaves(self, owner, ptr, level, key):
        if place(ptr, 0) is None:
            return
        if level == 0:
            yield key, ptr
            return
        node = self.page(ptr, NODE, level, owner, key)
        for index in range(256):
            below = node[64 + 12 * index :][:12]
            yield from self.leaves(owner, below, level - 1, key + index * 256 ** (level - 1))

    def journal(self):
        length = self.pool.config["meta"]["journal_blocks"]
        shards = self.pool.config["shards"]
        base = -(-(1 + 2 * shards) // 256) * 256 + self.shard * length
        for page in range(self.journal_from, self.journal_from + length):
            belong = [
                data
                for data in self.meta.copies(base + page % length)
                if self.is_whole(data, b"CVJL")
                and number(data, 8, 2) == self.shard
                and number(data, 32, 8) == self.epoch
                and number(data, 40, 8) == page
            ]
            if not belong:
                return
            data = max(belong, key=lambda data: number(data, 10, 2))
            if number(data, 12, 2) != 1:
                raise Damage("a journal page was made by a newer version")
            yield page, number(data, 48, 8), data[64 : number(data, 10, 2)]

    def replay(self):
        pages = list(self.journal())
        durable = max((mark for _, mark, _ in pages), default=0)
        self.applied = 0
        self.missing = {}
        for page, _, records in pages:
            at = 0
            while at < len(records):
                at = self.record(records, at, page < durable)
                self.applied += 1

    def record(self, data, at, sure):
        kind, first, volume, chunk, count, olds = struct.unpack_from("<BBIIHH", data, at)
        at += 14
        if kind == 7:
            lower = number(data, at, 4)
            if self.begun(lower, chunk).merge(self.begun(volume, chunk)):
                del self.maps[volume, chunk]
                for block in range(256):
                    crc = self.missing.pop((volume, chunk, block), None)
                    if crc is not None:
                        self.missing[lower, chunk, block] = crc
            return at + 4
        entry = self.begun(volume, chunk)
        blocks = range(first, first + count)
        if kind == 1:
            slot, at = place(data, at), at + 6
            crcs = struct.unpack_from(f"<{count}I", data, at)
            at += 4 * count
            for index, block in enumerate(blocks):
                where = (slot[0], slot[1] + index)
                if sure or self.has(where, crcs[index]):
                    entry.slots[block] = where
                    entry.crcs[block] = crcs[index]
                    entry.valid[block] = entry.inherits[block] = 0
                    self.missing.pop((volume, chunk, block), None)
                else:
                    self.missing[volume, chunk, block] = crcs[index]
        elif kind == 2:
            for block in blocks:
                entry.slots[block], entry.valid[block], entry.inherits[block] = None, 0, 0
                self.missing.pop((volume, chunk, block), None)
        elif kind == 3:
            slot, at = place(data, at), at + 6
            for index, block in enumerate(blocks):
                where = (slot[0], slot[1] + index)
                at_home = entry.valid[block] and entry.slots[block] is None
                if sure or at_home and self.has(where, entry.crcs[block]):
                    entry.slots[block] = where
        elif kind == 4:
            mask, at = data[at : at + 32], at + 32
            for block in range(256):
                if bit(mask, block) and (sure or entry.valid[block]):
                    entry.slots[block] = None
        elif kind == 5:
            home, mask, at = place(data, at), data[at + 6 : at + 38], at + 38
            named = [block for block in range(256) if bit(mask, block)]
            if sure:
                entry.home = home
                for block in named:
                    entry.valid[block] = 1
            elif entry.home in (None, home):
                self.at_home((volume, chunk), entry, home, named)
        elif kind == 6:
            new, old, at = place(data, at), place(data, at + 6), at + 12
            if sure or entry.home == old and (new or not any(entry.valid)):
                entry.home = new
                if new is None:
                    entry.valid = [0] * 256
        else:
            raise Damage(f"a journal record of kind {kind}")
        return at + 6 * olds

    def below(self, layer, chunk):
        """The nearest layer from this one down that tells of a chunk, and what it tells."""
        while layer and (layer, chunk) not in self.maps:
            layer = self.pool.parent(layer)
        return layer, self.maps.get((layer, chunk))

    def begun(self, layer, chunk):
        """A chunk of a layer; one that has none begins with what is beneath."""
        if (layer, chunk) not in self.maps:
            lower, entry = self.below(self.pool.parent(layer), chunk)
            fork = entry.fork(self.pool.epoch(lower)) if entry else Chunk()
            self.maps[layer, chunk] = fork
        return self.maps[layer, chunk]

    def owner(self, layer, chunk, block):
        """What has a block of a chunk of a layer; None when it is zeroes."""
        while True:
            layer, entry = self.below(layer, chunk)
            if entry is None or not entry.inherits[block]:
                return entry
            owner = layer
            while self.pool.parent(owner) and (
                self.pool.epoch(self.pool.parent(owner)) >= entry.inherits[block]
            ):
                owner = self.pool.parent(owner)
            if owner == layer:
                return None
            layer = owner

    def at_home(self, chunk, entry, home, blocks):
        for block in blocks:
            where = (home[0], home[1] + block)
            missing = self.missing.get((*chunk, block))
            if missing is not None and self.has(where, missing):
                del self.missing[(*chunk, block)]
                entry.slots[block], entry.crcs[block] = None, missing
            elif not (entry.slots[block] or entry.valid[block]) or not self.has(
                where, entry.crcs[block]
            ):
                continue
            entry.home, entry.valid[block] = home, 1

    def has(self, where, crc):
        return self.pool.block(where, crc) is not None

    def content(self, volume, chunk):
        if self.below(volume, chunk)[1] is None:
            return None
        blocks = []
        for block in range(256):
            entry = self.owner(volume, chunk, block)
            if entry is None:
                blocks.append(bytes(BLOCK))
                continue
            places = []
            if entry.slots[block]:
                places.append(entry.slots[block])
            if entry.valid[block]:
                places.append((entry.home[0], entry.home[1] + block))
            copies = (self.pool.block(where, entry.crcs[block]) for where in places)
            data = next((copy for copy in copies if copy), None) if places else bytes(BLOCK)
            if data is None:
                raise Damage(f"volume {volume}: block {chunk * 256 + block} is damaged")
            blocks.append(data)
        return b"".join(blocks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", nargs="+", metavar="IMAGE")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--extract", metavar="DIR", help="write each volume to DIR/NAME")
    arguments = parser.parse_args()
    pool = Pool(arguments.images)
    volumes = []
    for name, size, layer in pool.volumes():
        digest, left = hashlib.sha256(), size
        target = arguments.extract and open(os.path.join(arguments.extract, name), "wb")
        for chunk in pool.content(size, layer):
            data = (chunk or bytes(MIB))[: min(left, MIB)]
            left -= len(data)
            digest.update(data)
            if target and chunk is None:
                target.seek(len(data), os.SEEK_CUR)
            elif target:
                target.write(data)
        if target:
            target.truncate(size)
            target.close()
        row = {"name": name, "size": size, "sha256": digest.hexdigest()}
        volumes.append(row)
    if arguments.json:
        told = {"pool": pool.config["name"], "exported": pool.exported, "volumes": volumes}
        told["records"] = sum(shard.applied for shard in pool.shards)
        print(json.dumps(told))
        return
    print(f"pool {pool.config['name']}, generation {pool.generation}")
    for row in volumes:
        print(f"{row['sha256']}  {row['size']:>14}  {row['name']}")


if __name__ == "__main__":
    try:
        main()
    except (Damage, OSError, ValueError) as failed:
        print(f"error: {failed}", file=sys.stderr)
        sys.exit(1)
