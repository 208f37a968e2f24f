#!/usr/bin/env bash
# Metrics, with Debian's Prometheus, promtool and OpenMetrics parser: both formats are right, a server scrapes the
# daemon, every expression of the dashboard and the alert rules has data, counters grow with what a client writes,
# alerts fire for what is broken, and no port stays open.
# timeout: 180
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

api() { curl -sS --fail --unix-socket "$CONVECT_SOCKET" "$@"; }
port_of() { sed -n 's|.*metrics at http://[^ ]*:\([0-9]*\)/metrics.*|\1|p' "$1" | tail -n 1; }
ask() { # EXPRESSION: how many series it has now, and the sum of their values
  curl -sS --fail --data-urlencode "query=$1" "http://$server/api/v1/query" |
    field '(len(d["data"]["result"]), sum(float(one["value"][1]) for one in d["data"]["result"]))'
}
has_data() { [ "$(ask "$1" | cut -d, -f1)" != "(0" ]; }
# Nobody has the port, or another test's program.
is_refused() { ! curl -s --max-time 60 "http://127.0.0.1:$1/metrics" | grep -q '^convect_build_info'; }
is_firing() { curl -sS --fail "http://$server/api/v1/alerts" | grep -q "\"alertname\":\"$1\""; }

mib=$((1 << 20))
write_config
echo 'metrics = "127.0.0.1:0"' >>convect.toml
start_daemon
port="$(port_of daemon.log)"
[ -n "$port" ] || fail "the daemon does not say where its metrics are"
convect pool create tank fast mirror "file:$work/a.img?size=256M" "file:$work/b.img?size=256M" \
  slow stripe:64k "file:$work/c.img?size=256M" "file:$work/d.img?size=256M"
convect volume create tank/disk --size 1G --quota 512M
convect pool set tank --promotion-budget 10G
export_nbd disk tank/disk
nbd_of disk "disk.pwrite(b'd' * $mib, 0); disk.flush()"

say "both formats, over the Unix socket and by TCP"
api http://convect/metrics -o old -D head
grep -qi '^content-type: text/plain; version=0.0.4; charset=utf-8' head || fail "$(cat head)"
promtool check metrics <old >lint 2>&1 || fail "$(head lint)"
[ ! -s lint ] || fail "$(head lint)"
open='Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'
api http://convect/metrics -H "$open" -o new -D head
grep -qi '^content-type: application/openmetrics-text; version=1.0.0; charset=utf-8' head || fail "$(cat head)"
[ "$(tail -n 1 new)" = '# EOF' ] || fail "it ends with $(tail -n 1 new)"
# Between two looks a series may come or go.
cat >same.py <<'PYTHON'
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as older
def samples(families):
    return sorted((s.name, sorted(s.labels.items())) for f in families for s in f.samples)
new, old = samples(openmetrics(open("new").read())), samples(older(open("old").read()))
assert new == old, set(map(str, new)) ^ set(map(str, old))
assert len(new) == len(set(map(str, new))) > 200, len(new)
PYTHON
all_same() {
  api http://convect/metrics -o old && api http://convect/metrics -H "$open" -o new && python3 same.py &&
    curl -sS --fail "http://127.0.0.1:$port/metrics" -o tcp && [ "$(grep -c ^convect_ tcp)" = "$(grep -c ^convect_ old)" ]
}
wait_until 20 all_same
status() { curl -s -o /dev/null -w '%{http_code}' "$@"; }
[ "$(status "http://127.0.0.1:$port/v1/pools")" = 404 ] || fail "it serves more than metrics by TCP"
[ "$(status -X POST "http://127.0.0.1:$port/metrics")" = 405 ] || fail "it takes more than GET by TCP"

say "addresses that others reach are refused, until it is asked for"
other() { convect serve --socket "$work/o.sock" --state-dir "$work/other" --config other.toml "$@"; }
echo 'threads = 1' >other.toml
if other --metrics 0.0.0.0:0 2>refused; then fail "it serves everybody"; fi
grep -q 'error: other hosts can reach 0.0.0.0:0' refused || fail "$(cat refused)"
if other --metrics localhost 2>refused; then fail "it serves nobody knows where"; fi
grep -q "is not an address and a port" refused || fail "$(cat refused)"
if other --metrics "127.0.0.1:$port" 2>refused; then fail "two have one port"; fi
grep -q "error: cannot serve metrics at 127.0.0.1:$port: Address already in use" refused || fail "$(cat refused)"
"$CONVECT_BIN/convect" serve --socket "$work/o.sock" --state-dir "$work/other" --config other.toml \
  --metrics 0.0.0.0:0 --metrics-anywhere </dev/null >other.out 2>other.log &
other_pid=$!
defer 'kill $other_pid 2>/dev/null'
wait_until 60 grep -q '^ready$' other.out
curl -sS --fail "http://127.0.0.1:$(port_of other.log)/metrics" | grep -q '^convect_build_info' || fail "$(cat other.log)"
kill -TERM "$other_pid"
wait "$other_pid" || fail "it does not end well"
is_refused "$(port_of other.log)" || fail "the other daemon's port is open"

say "Prometheus scrapes it"
cp "$root/packaging/prometheus/convect.rules.yml" rules.yml
promtool check rules rules.yml | tee checked
grep -q SUCCESS checked || fail "the rules are wrong"
sed 's/for: .*/for: 0s/' rules.yml >quick.yml
cat >prometheus.yml <<YAML
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [quick.yml]
scrape_configs:
  - job_name: convect
    static_configs: [{targets: ["127.0.0.1:$port"]}]
YAML
prometheus --config.file=prometheus.yml --storage.tsdb.path="$work/tsdb" \
  --web.listen-address=127.0.0.1:0 </dev/null >prometheus.log 2>&1 &
prometheus_pid=$!
defer 'kill $prometheus_pid 2>/dev/null'
listens() { sed -n 's/.*msg="Listening on" address=\([0-9.:]*\).*/\1/p' prometheus.log | grep .; }
wait_until 30 listens
server="$(listens)"
wait_until 30 has_data 'up{job="convect"} == 1'
# It takes OpenMetrics: the unit of a counter is known from that alone.
knows_unit() { curl -sS "http://$server/api/v1/targets/metadata?metric=convect_pool_read_bytes" | grep -q '"unit":"bytes"'; }
wait_until 20 knows_unit

say "counters grow by what a client writes and reads"
written() { ask "convect_$1_written_bytes_total" | tr -d '()' | cut -d' ' -f2; }
# One MiB was written before.
nbd_of disk "
for at in range(64):
    disk.pwrite(bytes([at + 1]) * $mib, at * $mib)
disk.flush()
for at in range(64):
    assert disk.pread($mib, at * $mib) == bytes([at + 1]) * $mib
"
grew() { python3 -c 'import sys; sys.exit(float(sys.argv[1]) != 65 * 1048576)' "$(written "$1")"; }
wait_until 20 grew volume
wait_until 20 grew pool
wait_until 20 grew export
wait_until 20 has_data 'convect_export_write_latency_seconds_count == on(export) convect_export_writes_total > 64'
wait_until 20 has_data "convect_volume_read_bytes_total{volume=\"disk\"} >= $((64 * mib))"
wait_until 20 has_data "sum(convect_drive_written_bytes_total) >= $((128 * mib))"
wait_until 20 has_data 'convect_drive_write_latency_seconds_count == convect_drive_writes_total > 0'

say "histograms: how long and how large"
# A client wrote 65 times one MiB, each of which is one operation.
up_to() { printf 'convect_volume_write_size_bytes_bucket{volume="disk",le=~"%s"}' "$1"; }
wait_until 20 has_data "$(up_to '1048576.0|1.048576e.06') - ignoring(le) $(up_to '524288.0|524288') == 65"
wait_until 20 has_data 'convect_volume_write_size_bytes_sum{volume="disk"} == on(volume) convect_volume_written_bytes_total{volume="disk"}'
for kind in read write; do
  wait_until 20 has_data "convect_volume_${kind}_latency_seconds_count{volume=\"disk\"} == on(volume) convect_volume_${kind}s_total{volume=\"disk\"}"
  wait_until 20 has_data "histogram_quantile(0.99, convect_volume_${kind}_latency_seconds_bucket{volume=\"disk\"}) > 0"
  spread="$(ask "histogram_quantile(0.5, convect_volume_${kind}_latency_seconds_bucket{volume=\"disk\"})" | tr -d '()' | cut -d' ' -f2)"
  say "median of ${kind}s of 1 MiB: $spread s"
done

say "every expression of the dashboard and the rules has data"
convect pool scrub tank --wait
python3 - "$root" >expressions <<'PYTHON'
import json, re, sys, yaml
root = sys.argv[1]
found = []
for panel in json.load(open(f"{root}/packaging/grafana/convect.json"))["panels"]:
    found += [target["expr"] for target in panel.get("targets", [])]
rules = yaml.safe_load(open(f"{root}/packaging/prometheus/convect.rules.yml"))
for rule in rules["groups"][0]["rules"]:
    # What it compares; only what is wrong has data of the whole.
    compared = re.fullmatch(r"(.*?) (?:>|<|==) [0-9.* ]+", rule["expr"])
    found.append(compared[1])
for expression in found:
    print(expression.replace("$__rate_interval", "60s").replace("$pool", ".*"))
PYTHON
[ "$(wc -l <expressions)" -ge 50 ] || fail "only $(wc -l <expressions) expressions were found"
# No pool is absent here; every other one has to have data.
grep -vx convect_pool_absent expressions >asked
[ "$(wc -l <asked)" = "$(($(wc -l <expressions) - 1))" ] || fail "the rule for absent pools is not there"
while read -r expression; do
  # The first rates need two scrapes.
  wait_until 15 has_data "$expression"
done <asked
say "$(wc -l <asked) expressions have data"
rules_are_well() {
  curl -sS "http://$server/api/v1/rules" | field '[rule for group in d["data"]["groups"] for rule in group["rules"] if rule["health"] != "ok"]' | grep -x '\[\]'
}
wait_until 20 rules_are_well

say "alerts: a leg with wrong data, and a leg out"
if is_firing ConvectScrubFoundDamage || is_firing ConvectLegOut; then fail "alerts before anything is wrong"; fi
dd if=/dev/urandom of=b.img bs=1M seek=64 count=128 conv=notrunc,fsync status=none
convect pool scrub tank --wait
wait_until 20 is_firing ConvectScrubFoundDamage
convect pool offline tank "file:$work/b.img"
wait_until 20 is_firing ConvectLegOut
if is_firing ConvectDataLost; then fail "data is lost"; fi

say "a scrape is cheap, and nothing is left open"
cost="$(ask convect_scrape_duration_seconds)"
say "seconds to gather, of one pool: $cost"
kill -TERM "$prometheus_pid"
wait "$prometheus_pid" || fail "Prometheus ended badly"
stop_daemon
is_refused "$port" || fail "the port of the metrics is still open"
