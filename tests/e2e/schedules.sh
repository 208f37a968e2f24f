#!/usr/bin/env bash
# Snapshots by a schedule: of two volumes at one moment, over a kill that misses some and a move of
# the pool, and old ones that go while one that is held stays.
# timeout: 420
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# A field of the first schedule.
schedule() { convect --json snapshot schedule list pool | field "d['items'][0]['$1']"; }

# Names of what a volume has by the schedule, a line each, the oldest first.
taken() {
  convect --json snapshot list "pool/$1" | field '"\n".join(s["name"] for s in d["items"] if s["schedule"] == "minute")'
}

counts() { [ "$(taken b | grep -c .)" -ge "$1" ]; }

# When a snapshot was taken, in seconds since 1970, by its name.
time_of() { python3 -c 'import datetime, sys
print(int(datetime.datetime.strptime(sys.argv[1], "minute-%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=datetime.UTC).timestamp()))' "$1"; }

is_there() { [ "$(taken a | grep -cxF "$1")" = 1 ]; }

later_than() { [ "$(taken b | tail -n 1)" \> "$1" ]; }

# The whole volume, and kept as NAME.img.
fill() { # NAME
  { yes "$1" || true; } | head -c 16M >"$1.img"
  nbdcopy --flush "$1.img" "$(uri a)"
}

refused() { # WORDS COMMAND...
  local words=$1
  shift
  if "$@" 2>refusal; then fail "this was not refused: $*"; fi
  grep -q -- "$words" refusal || fail "$* said: $(cat refusal)"
}

start_daemon
create_pool pool 256M 256M
convect volume create pool/a --size 16M
convect volume create pool/b --size 16M
export_nbd a pool/a
fill as-it-was

say "both volumes at one moment, within the minute"
refused "out of range" convect snapshot schedule set pool/a@x --every 10s --keep 1
refused "not a duration" convect snapshot schedule set pool/a@x --every soon --keep 1
refused "share their pool and name" convect snapshot schedule set pool/a@x pool/b@y --every 1h --keep 1
convect snapshot schedule set pool/a@minute pool/b@minute --every 1m --keep 5
wait_until 80 counts 1
# Another minute may have begun meanwhile, as at any look from here on.
first="$(taken a | head -n 1)"
[ "$first" = "$(taken b | head -n 1)" ] || fail "a has $first, b $(taken b)"
[[ "$first" =~ ^minute-[0-9-]{10}T[0-9-]{8}Z$ ]] || fail "its name is $first"
[ "$(schedule missed)" = 0 ] || fail "$(convect snapshot schedule list)"
fill afterwards
export_nbd first "pool/a@$first"
nbdcopy "$(uri first)" read.img
cmp read.img as-it-was.img || fail "the snapshot is not as the volume was"
convect export delete first --yes
convect snapshot hold "pool/a@$first"

say "a kill, and two due times for which nobody is there"
kill_daemon
python3 "$root/tests/format/read_pool.py" --json pool-*.img >read.json
[ "$(field "sum(v['name'] == 'a@$first' for v in d['volumes'])" <read.json)" = 1 ] || fail "the document's reader does not find it"
convect check "file:$work/pool-fast.img" "file:$work/pool-slow1.img" "file:$work/pool-slow2.img"
before="$(field "'\n'.join(sorted(v['name'][2:] for v in d['volumes'] if v['name'].startswith('a@minute-')))" <read.json)"
last="$(time_of "$(tail -n 1 <<<"$before")")"
# The first is missed, and the second taken late.
while [ "$(date +%s)" -lt $(((last / 60 + 2) * 60 + 1)) ]; do sleep 1; done
start_daemon
wait_until 25 counts $(($(wc -l <<<"$before") + 1))
[ "$(schedule missed)" -ge 1 ] || fail "nothing is said to be missed: $(convect snapshot schedule list)"
[ "$(schedule missed_since_s)" = $(((last / 60 + 1) * 60)) ] || fail "$(convect --json snapshot schedule list)"
grep -q "schedule minute of pool pool (a, b): .* were missed" daemon.log || fail "the log does not say so"
convect snapshot schedule list pool/b | tee listed
grep -q " since " listed || fail "the list does not say so"
[ -z "$(taken a | cut -c 1-23 | uniq -d)" ] || fail "more than one was taken in a minute: $(taken a)"

say "the pool moves, and its schedule with it; fewer are kept from the next on"
convect snapshot schedule set pool/a@minute pool/b@minute --every 1m --keep 1
[ "$(schedule missed)" -ge 1 ] || fail "another number to keep begins anew"
second="$(taken a | tail -n 1)"
convect pool export pool
convect pool import pool --drive "file:$work/pool-fast.img" "file:$work/pool-slow1.img" "file:$work/pool-slow2.img"
[ "$(schedule keep)" = 1 ] || fail "the schedule stayed behind: $(convect snapshot schedule list)"
wait_until 80 later_than "$second"
# A held one and one that is kept; an old one goes a moment after a new one has come.
few_are_kept() { ! is_there "$second" && [ "$(taken a | wc -l)" = 2 ] && [ "$(taken b | wc -l)" = 1 ]; }
wait_until 10 few_are_kept
is_there "$first" || fail "what was held is gone: $(taken a)"

say "without a schedule its snapshots stay"
convect snapshot schedule remove pool/a@minute pool/b@minute
refused "no schedule 'minute'" convect snapshot schedule remove pool/a@minute
[ "$(convect --json snapshot schedule list | field 'len(d["items"])')" = 0 ] || fail "it is still there"
is_there "$first" || fail "a snapshot went with its schedule"
stop_daemon
