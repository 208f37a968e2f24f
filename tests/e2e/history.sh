#!/usr/bin/env bash
# Figures over time: what a client writes is told by seconds, for the volume, its pool, tier and drive, also after
# kill -9 and with a file that is damaged in places.
# timeout: 120
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

mib=$((1 << 20))
# Bytes that a figure tells of since a second, and steps that are known.
told() { # ARGUMENTS of `convect history`... SERIES
  convect history "${@:1:$#-1}" --series "${*: -1}" --last 10m --step 1s --json |
    field '(round(sum(v or 0 for v in d["series"][0]["values"]) * d["step_s"]), sum(v is not None for v in d["series"][0]["values"]))' |
    tr -d '(),'
}
told_bytes() { told "$@" | cut -d' ' -f1; }
near() { # VALUE OF: by a twentieth
  python3 -c 'import sys; v, of = map(float, sys.argv[1:]); sys.exit(abs(v - of) > of / 20)' "$1" "$2"
}
all_told() { near "$(told_bytes "$@")" "$wanted"; }
known() { told tank/v writes | cut -d' ' -f2; }

start_daemon
create_pool tank 256M 512M
convect volume create tank/v --size 512M
export_nbd disk tank/v
is_known() { [ "$(known)" -ge 2 ]; }
wait_until 20 is_known

say "what is written is told of"
nbd_of disk "
import time
for at in range(40):
    disk.pwrite(bytes([at + 1]) * $mib, at * $mib)
    time.sleep(0.05)
disk.flush()
"
wanted=$((40 * mib))
wait_until 20 all_told tank/v write_bytes
wait_until 20 all_told tank write_bytes
# A drive is written all of that, and what it takes to find it again.
drive_told() { [ "$(told_bytes tank --drive "file:$work/tank-fast.img" write_bytes)" -ge "$wanted" ]; }
wait_until 20 drive_told
convect history tank/v --last 5m | tee shown
grep -q '^write_bytes .*[▂▃▄▅▆▇█]' shown || fail "no picture"
grep -q 'TIME (UTC) ' shown || fail "no table"
convect history tank --tier fast --json | field '[s["name"] for s in d["series"]]' | grep -q "'used'" || fail "no tier"
export_told() { convect history tank --export disk --last 1m --json | field 'd["series"][0]["values"][-3:]' | grep -E '[0-9]'; }
wait_until 20 export_told

say "percentiles, sizes and depth"
of_series() { # SERIES: its values that are known
  convect history tank/v --series "$1" --last 10m --step 1s --json | field '[v for v in d["series"][0]["values"] if v]'
}
for series in write_latency_p50 write_latency_p99 write_latency_p999 queue_depth; do
  of_series "$series" | grep -q '[1-9]' || fail "no $series"
done
of_series write_size_p50 | grep -q "$mib.0" || fail "writes were of $(of_series write_size_p50)"
writes="$(convect history tank/v --last 10m --json | field 'sum(d["spreads"]["writes"]["times"])')"
[ "$writes" -eq 40 ] || fail "$writes writes were counted by times"
convect volume create tank/new --size 16M
convect history tank/new --last 1m >/dev/null || fail "a volume that is new has no history"
convect volume set tank/v --target-iops 5000 --target-latency 2ms >/dev/null
convect volume show tank/v | grep -q 'targets: *5000 IOPS, p99 below 2 ms' || fail "$(convect volume show tank/v)"

say "kill -9, and time without a daemon"
before="$(known)"
kill_daemon
sleep 4
start_daemon
all_told tank/v write_bytes || fail "it was $wanted, and is $(told_bytes tank/v write_bytes)"
of_series write_latency_p99 | grep -q '[1-9]' || fail "the percentiles are gone"
convect volume show tank/v | grep -q 'targets: *5000 IOPS' || fail "the targets are gone"
convect volume set tank/v --target-iops none --target-latency none >/dev/null
if convect volume show tank/v | grep -q '^expected'; then fail "the targets are there"; fi
grew() { [ "$(known)" -gt $((before + 3)) ]; }
wait_until 20 grew
convect history tank/v --last 10m --step 1s --json |
  field '"".join("?" if v is None else "x" for v in d["series"][0]["values"]).strip("?")' | grep -qF 'x?' || fail "the history shows no gap"

say "a damaged file loses what is damaged, and no more"
stop_daemon
head -c 3000 /dev/urandom | dd of=state/history/figures bs=1 seek=70000 conv=notrunc status=none
echo '{' >state/history/index.json.new
start_daemon
wait_until 20 is_known
convect history tank/v >/dev/null
stop_daemon
echo '{' >state/history/index.json
start_daemon
grep -q 'the history index is corrupt' daemon.log || fail "$(tail -n 5 daemon.log)"
wait_until 20 is_known

say "questions that cannot be are refused"
if convect history tank/none 2>refused; then fail "it knows a volume that is not there"; fi
grep -q "no history of 'volume/tank/none'" refused || fail "$(cat refused)"
if convect history tank/v --series speed 2>refused; then fail "it knows such a figure"; fi
grep -q "has no metric 'speed': choose from reads" refused || fail "$(cat refused)"
if convect history tank/v --last 1h --step 0s 2>refused; then :; fi
if convect history tank/v --last 700d --step 1h 2>refused; then fail "it tells of very many steps"; fi
grep -q 'exceed the limit of 4000' refused || fail "$(cat refused)"

say "it takes the room that the document says"
objects="$(python3 -c 'import json; print(len(json.load(open("state/history/index.json"))["objects"]))')"
taken="$(du -k state/history/figures | cut -f1)"
[ "$taken" -gt 0 ] && [ "$taken" -le $((objects * 1952)) ] || fail "$objects objects take $taken KiB"
