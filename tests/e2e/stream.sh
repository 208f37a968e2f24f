#!/usr/bin/env bash
# Snapshots as streams: to a file and to another pool, in full and in differences, cut, damaged and gone
# on with, also after a kill of the daemon. What is named is whole, and little is read for little.
# timeout: 300
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

size=$((160 << 20))

# With the standard input as it is, unlike `convect`.
receive() { "$CONVECT_BIN/convect" receive "$@"; }

# Writes the first so many MiB.
fill() { # EXPORT SEED MIB
  nbdsh -u "$(uri "$1")" -c "
import content
for at in range(0, $3):
    h.pwrite(content.mib($2, at), at << 20)
h.flush()
"
}

write() { # EXPORT SEED
  nbdsh -u "$(uri "$1")" -c "
import random
random.seed($2)
for _ in range(100):
    at = random.choice((0, 20, 76, 145)) * (1 << 20) + random.randrange(4 << 20) // 4096 * 4096
    h.pwrite(random.randbytes(4096) * random.randint(1, 8), at)
h.trim(1 << 20, (2 << 20) + 4096 * $2)
h.flush()
"
}

# Every byte of both is read, holes as well.
same() { # POOL/VOLUME@SNAPSHOT POOL/VOLUME@SNAPSHOT
  export_nbd one "$1" >/dev/null
  export_nbd other "$2" >/dev/null
  nbd_of "one other" '
size, mib = one.get_size(), 1 << 20
assert size == other.get_size() and size % mib == 0, (size, other.get_size())
for at in range(0, size, mib):
    assert one.pread(mib, at) == other.pread(mib, at), f"MiB {at // mib} differs"
' || fail "$1 is not as $2"
  for name in one other; do convect export delete "$name" --yes >/dev/null; done
}

snapshots() { convect --json snapshot list "$1" | field '" ".join(s["name"] for s in d["items"])'; }
token() { convect --json receive --status "$1" | field 'd["token"]'; }
received() { convect --json receive --status "$1" | field 'd["done"]'; }

refused() { # WORDS COMMAND...
  local words=$1
  shift
  if "$@" >/dev/null 2>refusal; then fail "this was not refused: $*"; fi
  grep -q -- "$words" refusal || fail "$* said: $(cat refusal)"
  [ "$(wc -l <refusal)" = 1 ] || fail "$* said more than one line: $(cat refusal)"
}

start_daemon
create_pool pool 512M 1G --shards 2
create_pool lake 512M 1G --shards 1
convect volume create pool/disk --size $size --lba 4096
export_nbd disk pool/disk
fill disk 0 80
write disk 1
convect snapshot create pool/disk@a

say "all of a snapshot, by a file, into another pool"
convect --json send pool/disk@a >a.stream 2>a.told
read_bytes="$(field 'd["read"]' <a.told)"
[ "$(field 'd["stream"]' <a.told)" = "$(stat -c %s a.stream)" ] || fail "the stream has another length than was told"
receive lake/new <a.stream | grep -q '^lake/new@a received'
same lake/new@a pool/disk@a
[ "$(convect --json volume show lake/new | field '(d["size"], d["lba_size"])')" = "($size, 4096)" ] || fail "the volume is another"
refused "already has this snapshot" receive lake/new <a.stream

say "a difference of one in a hundred reads one in a hundred"
nbdsh -u "$(uri disk)" -c "
import random
random.seed(5)
for block in random.sample(range(40960), 409):
    h.pwrite(random.randbytes(4096), block * 4096)
h.flush()
"
convect snapshot create pool/disk@b
convect --json send pool/disk@b --from a 2>b.told | receive lake/new
same lake/new@b pool/disk@b
field 'd["read"] == 409 * 4096 and d["read"] / d["size"] < 0.0101 and d["stream"] < 1.02 * d["read"]' <b.told |
  grep -qx True || fail "for a hundredth this was read: $(cat b.told)"
[ "$read_bytes" -gt $((75 << 20)) ] || fail "all of it is told as $read_bytes bytes"

say "what is resized, trimmed and zeroed in between"
convect export delete disk --yes
convect volume resize pool/disk $((130 << 20)) --shrink --yes
convect volume resize pool/disk $((150 << 20))
export_nbd disk pool/disk
nbdsh -u "$(uri disk)" -c "h.trim(8 << 20, 10 << 20); h.zero(4096, 50 << 20); h.pwrite(b'end.' * 1024, (150 << 20) - 4096); h.flush()"
convect snapshot create pool/disk@c
"$CONVECT_BIN/convect" send pool/disk@c --from b 2>c.told | receive lake/new
same lake/new@c pool/disk@c
grep -q 'read .* of 150 MiB' c.told || fail "send told: $(cat c.told)"
# What was received is sent on, and known for what it is.
"$CONVECT_BIN/convect" send lake/new@b 2>/dev/null | receive pool/third
"$CONVECT_BIN/convect" send pool/disk@c --from b 2>/dev/null | receive pool/third
same pool/third@c pool/disk@c

say "a stream that was cut names nothing, and goes on"
write disk 2
fill disk 9 80
convect snapshot create pool/disk@d
convect send pool/disk@d --from c >d.stream 2>/dev/null
half=$(($(stat -c %s d.stream) / 2))
head -c "$half" d.stream >half.stream
refused "is truncated after.*--resume" receive lake/new <half.stream
grep -q "$(token lake/new)" refusal || fail "the refusal has not the token that is kept"
[ "$(snapshots lake/new)" = "a b c" ] || fail "a cut stream named something"
refused "contains an incomplete snapshot d" convect export create no lake/new nbd --listen "unix:$work/no.sock"
[ "$(received lake/new)" -gt $((half / 2)) ] || fail "of half of the stream only $(received lake/new) bytes were kept"
restart_daemon
if convect --json job list | grep -q 'the daemon stopped'; then fail "a receipt that had failed before is said to be broken off"; fi
convect --json send pool/disk@d --resume "$(token lake/new)" 2>rest.told >rest.stream
[ "$(stat -c %s rest.stream)" -lt $((half + half / 10)) ] || fail "all was sent again"
receive lake/new <rest.stream
same lake/new@d pool/disk@d
refused "nothing to resume" convect receive --status lake/new

say "damage is seen, and nothing is named"
write disk 3
convect snapshot create pool/disk@e
convect send pool/disk@e --from d >e.stream 2>/dev/null
at=$(($(stat -c %s e.stream) * 2 / 3))
cp e.stream damaged.stream
printf '%b' "\\x$(printf %02x $((0x$(xxd -s $at -l 1 -p e.stream) ^ 16)))" |
  dd of=damaged.stream bs=1 seek=$at conv=notrunc status=none
if cmp -s e.stream damaged.stream; then fail "nothing was damaged"; fi
refused "is damaged" receive lake/new <damaged.stream
refused "not a stream" receive lake/other <a.told
[ "$(snapshots lake/new)" = "a b c d" ] || fail "a damaged stream named something"
receive lake/new <e.stream
same lake/new@e pool/disk@e

say "a receiver that was written is refused, until it is rolled back"
export_nbd new lake/new
nbdsh -u "$(uri new)" -c "h.pwrite(b'mine' * 1024, 33 << 20); h.flush()"
write disk 4
convect snapshot create pool/disk@f
convect send pool/disk@f --from e >f.stream 2>/dev/null
refused "is exported as new" receive lake/new <f.stream
convect export delete new --yes
refused "was written since e, first at 33 MiB" receive lake/new <f.stream
convect send pool/disk@f --from a >af.stream 2>/dev/null
refused "was shrunk since a" receive lake/new <af.stream
receive lake/new --force <f.stream
same lake/new@f pool/disk@f
refused "does not descend from the base snapshot" receive pool/third <f.stream

say "the daemon is killed while it receives"
fill disk 11 145
convect snapshot create pool/disk@g
convect send pool/disk@g --from f >g.stream 2>/dev/null
mkfifo slow
receive lake/new <slow >/dev/null 2>killed &
client=$!
exec 4>slow
head -c $((135 << 20)) g.stream >&4
wait_until 60 received lake/new
is_marked() { [ "$(received lake/new)" -ge $((128 << 20)) ]; }
wait_until 60 is_marked
refused "being sent or received" convect volume delete lake/new --yes
kill_daemon
exec 4>&-
if wait "$client"; then fail "a receiver whose daemon was killed says that all is well"; fi
start_daemon
[ "$(snapshots lake/new)" = "a b c d e f" ] || fail "a killed daemon named something"
is_marked || fail "only $(received lake/new) bytes are kept"
convect send pool/disk@g --resume "$(token lake/new)" >rest.stream 2>/dev/null
[ "$(stat -c %s rest.stream)" -lt $((25 << 20)) ] || fail "all was sent again"
receive lake/new <rest.stream
same lake/new@g pool/disk@g

say "wrong usage"
refused "volume disk has no snapshot 'none'" convect send pool/disk@none
refused "does not descend from" convect send pool/disk@a --from b
refused "resume token" convect send pool/disk@a --resume "x$(printf '0%.0s' {1..10})"
refused "choose another name" receive pool/third <a.stream
stop_daemon
