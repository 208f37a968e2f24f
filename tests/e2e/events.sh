#!/usr/bin/env bash
# Events and alerts of a real daemon: a leg that is taken out and comes back, a pool that fills, a scrub that finds
# damage, an export that cannot be started, tokens that are no good; told once each, live and by list, and there again
# after kill -9.
# timeout: 180
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

open_alerts() { convect alert list --json | field '" ".join(sorted(a["code"] for a in d["items"]))'; }
is_open() { open_alerts | grep -qw "$1"; }
is_closed() { ! is_open "$1"; }
times() { convect event list --limit 1000 --json | # CODE STATE
  field "sum(e['code'] == '$1' and e['state'] == '$2' for e in d['items'])"; }

mib=$((1 << 20))
write_config
echo 'listen = "127.0.0.1:0"' >>convect.toml
start_daemon
convect pool create tank slow mirror "file:$work/a.img?size=256M" "file:$work/b.img?size=256M"
convect volume create tank/v --size 1G
export_nbd disk tank/v
[ -z "$(open_alerts)" ] || fail "something is wrong at the start: $(open_alerts)"
[ -z "$(convect alert list)" ] || fail "it prints something though all is well"
"$CONVECT_BIN/convect" event watch --json </dev/null >watched 2>watch.err &
watch_pid=$!
defer 'kill $watch_pid 2>/dev/null'

say "a leg is out, once, also after kill -9, and back"
nbd_of disk "disk.pwrite(b'd' * $mib, 0); disk.flush()"
convect pool offline tank "file:$work/b.img"
wait_until 20 is_open leg_out
convect alert list | tee alerts
grep -q 'critical leg_out' alerts || fail "no severity"
grep -q "action: .*convect pool online tank file:$work/b.img.*docs/events.md#leg_out" alerts || fail "no advice"
wait_until 20 grep -q '"code":"leg_out"' watched
kill_daemon
start_daemon
is_open leg_out || fail "it is forgotten"
sleep 3
[ "$(times leg_out raised)" = 1 ] || fail "it was raised $(times leg_out raised) times"
[ "$(times daemon_killed noted)" = 1 ] || fail "nobody says that it was killed"
convect pool online tank "file:$work/b.img"
wait_until 30 is_closed leg_out
[ "$(times leg_out cleared)" = 1 ] || fail "it was cleared $(times leg_out cleared) times"

say "a pool fills"
convect pool warn tank --at 20,90
nbd_of disk "
for at in range(100):
    disk.pwrite(bytes([at + 1]) * $mib, at * $mib)
disk.flush()
"
wait_until 40 is_open pool_filling
convect alert list --json | field '[a["message"] for a in d["items"] if a["code"] == "pool_filling"]' |
  grep -q 'its space is' || fail "it does not say how full"

say "a scrub finds damage, and a later one finds nothing any more"
dd if=/dev/urandom of=b.img bs=1M seek=64 count=64 conv=notrunc,fsync status=none
convect pool scrub tank --rate 1G --wait
wait_until 20 is_open scrub_found
convect pool scrub tank --rate 1G --wait
wait_until 20 is_closed scrub_found
is_closed data_lost || fail "data was lost"

say "tokens that are no good"
address="$(sed -n 's|.*the page is at https://\(.*\)/$|\1|p' daemon.log | tail -n 1)"
for _ in 1 2 3; do
  curl -s --cacert state/certificate.pem "https://$address/v1/pools" -H 'Authorization: Bearer convect_x_y' -o /dev/null
done
wait_until 20 is_open login_failed
convect event list --code login_failed --json | field 'd["items"][-1]["subject"]["name"]' | grep -qx 127.0.0.1

say "an export that cannot be started after a restart"
stop_daemon
mkdir disk.sock
start_daemon
wait_until 20 is_open export_refused
stop_daemon
rmdir disk.sock
start_daemon
wait_until 20 is_closed export_refused

say "pages and filters by the command line"
convect event list --severity critical --json | field '{e["code"] for e in d["items"]}' | grep -x "{'leg_out'}" || fail "other events"
convect event list --limit 2 | grep -q 'more: --before ' || fail "no page follows"
if convect event list --code nonsense 2>refused; then fail "it knows such a code"; fi
grep -q "'nonsense' is not an event code" refused || fail "$(cat refused)"

say "what is torn is left out, and the rest is there"
kill_daemon
truncate -s -7 state/events.log
whole="$(wc -l <state/events.log)"
start_daemon
convect event list --limit 1000 --json >now
# The one that was torn is no event; the daemon notes that it was killed and started.
since="$(field "' '.join(e['code'] for e in sorted(d['items'], key=lambda e: e['number'])[$whole:])" <now)"
for code in daemon_killed daemon_started; do
  [[ " $since " = *" $code "* ]] || fail "$whole whole events were left, and after those there are: $since"
done
