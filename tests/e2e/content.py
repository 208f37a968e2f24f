"""Contents of a MiB that differ by seed and place, in each block of 4 KiB. Random numbers of its own for each MiB were most
of what some tests did: these are parts of one text, each begun elsewhere."""

import functools
import random

MIB = 1 << 20
BLOCK = 4096
# No multiple of a block: what two places share lies at other places within their blocks.
STEP = BLOCK + 3


@functools.lru_cache(maxsize=4)
def _text(seed):
    text = random.Random(seed).randbytes(MIB)
    return text + text


def mib(seed, at):
    begin = at * STEP % MIB
    return _text(seed)[begin:begin + MIB]
