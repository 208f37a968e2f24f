#!/usr/bin/env bash
# Quality of service, with real clients: policies are created, given, changed and refused; a volume with a maximum is held
# to it while its data stays right and a neighbour goes on; all of it is so after kill -9.
# timeout: 180
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

qos() { convect --json volume show "$1" | field "d[\"qos\"]$2"; }
refused() { # refused TEXT COMMAND...: the command fails with one line that says TEXT.
  local text="$1"
  shift
  if "$@" 2>refused; then fail "$* was done"; fi
  [ "$(wc -l <refused)" = 1 ] || fail "$*: $(cat refused)"
  grep -q "$text" refused || fail "$*: $(cat refused)"
}

start_daemon
create_pool pool 256M 256M

say "policies are created, listed, changed and refused"
convect qos policy list pool | tee list
for name in mission-critical business-critical business-standard non-critical non-critical-low; do
  grep -q "$name" list || fail "no policy $name: $(cat list)"
done
convect qos policy create pool/gold --level 2 --min-iops 100 --max-latency 50ms --weight 300
convect qos policy create pool/slow --max-iops 200 --burst 1
convect qos policy set pool/gold --min-iops 150 | grep -q 'min IOPS: *150' || fail "not changed"
convect qos policy show pool/gold | grep -q 'max latency: *50 ms' || fail "$(convect qos policy show pool/gold)"
refused "already has a policy 'gold'" convect qos policy create pool/gold --level 2
refused 'choose 1 to 5' convect qos policy create pool/wrong --level 9
refused 'above its maximum' convect qos policy create pool/wrong --min-iops 10 --max-iops 5
refused 'built in' convect qos policy set pool/mission-critical --min-iops 1
refused 'built in' convect qos policy delete pool/3
refused "no policy 'silver'" convect qos policy show pool/silver
refused "no policy 'silver'" convect volume create pool/nothing --size 1G --policy silver
refused 'not a number of IOPS' convect qos policy create pool/wrong --min-iops many
convect qos policy set pool/gold --reaction eager --fast-floor 8M --ram-share 20% | tee gold
for line in 'reaction: *eager' 'fast floor: *8 MiB' 'RAM share: *20 %'; do
  grep -q "$line" gold || fail "no '$line': $(cat gold)"
done
refused 'at most 75 %' convect qos policy create pool/wrong --ram-share 80
refused 'is not a share' convect qos policy create pool/wrong --ram-share many
convect qos policy create pool/huge --fast-floor 1T
refused 'choose a smaller fast floor' convect volume create pool/nothing --size 1G --policy huge
convect qos policy delete pool/huge

say "volumes have policies from the beginning or later, and clones inherit them"
convect volume create pool/disk --size 1G --policy slow | grep -q 'policy: *slow (level 3)' || fail "no policy"
convect volume create pool/other --size 1G
convect volume set pool/other --policy gold
convect snapshot create pool/other@now
convect snapshot clone pool/other@now clone
[ "$(qos pool/clone '["policy"]["name"]')" = gold ] || fail "the clone has not its origin's policy"
refused 'give them another one' convect qos policy delete pool/gold
convect qos check pool --policy mission-critical --volumes 2 | tee check
grep -q 'mission-critical' check || fail "$(cat check)"
grep -q '^warning: ' check || fail "nothing was shown yet: $(cat check)"

say "volumes of a group share a policy, and it is kept whole"
convect qos group create pool/accounting --policy gold | grep -q 'policy: *gold (level 2)' || fail "no group"
convect volume create pool/ledger --size 1G --group accounting | grep -q 'shared by group accounting' || fail "not in it"
convect volume set pool/clone --group accounting
convect qos group show pool/accounting | grep -q 'volumes: *clone, ledger' || fail "$(convect qos group show pool/accounting)"
convect qos group set pool/accounting --policy business-critical
[ "$(qos pool/clone '["policy"]["name"]')" = business-critical ] || fail "the group's volumes have the old policy"
convect qos group set pool/accounting --policy gold
refused "already has a group 'accounting'" convect qos group create pool/accounting --policy gold
refused "no policy 'silver'" convect qos group create pool/vdi --policy silver
refused "no policy 'silver'" convect qos group set pool/accounting --policy silver
refused 'the name' convect qos group create pool/none --policy gold
refused "no group 'vdi'" convect qos group show pool/vdi
refused "no group 'vdi'" convect volume set pool/ledger --group vdi
refused "no group 'vdi'" convect volume create pool/nothing --size 1G --group vdi
refused 'remove them with' convect qos group delete pool/accounting
convect qos check pool | grep -q '^group accounting *gold' || fail "$(convect qos check pool)"

say "a volume is held to its maximum, its data is right, and a neighbour goes on"
export_nbd disk pool/disk
export_nbd other pool/other
nbd_of "disk other" '
def ended(error):
    assert error.value == 0, error
    return 1
for block in range(600):
    disk.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(block.to_bytes(8, "big") * 512)), block * 4096, ended)
for block in range(300):
    other.pwrite(b"n" * 4096, block * 4096)
while disk.aio_in_flight() > 0:
    disk.poll(1000)
for block in range(0, 600, 60):
    assert disk.pread(4096, block * 4096) == block.to_bytes(8, "big") * 512, block
'
held() { [ "$(qos pool/disk '["held"]')" -gt 100 ]; }
wait_until 30 held
counted() { [ "$(qos pool/other '["operations"]')" -ge 300 ]; }
wait_until 30 counted
convect qos status pool | tee status
grep -q '^disk *slow' status || fail "$(cat status)"
own() { [ "$(qos pool/disk '["own_ns"]')" -gt 0 ]; }
wait_until 30 own
convect qos check pool | tee check
grep -q '^fast *1 ' check || fail "no tier: $(cat check)"
grep -q '^slow *2 ' check || fail "no tier: $(cat check)"
convect qos check pool --policy mission-critical | grep -q '^note: this holds only while' || fail "it is said to fit on slow drives"
bottleneck() { # The daemon judges what happened between two of its looks: there is something to see in each.
  nbd_of "disk" '
def ended(error):
    assert error.value == 0, error
    return 1
for block in range(300):
    disk.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(block.to_bytes(8, "big") * 512)), block * 4096, ended)
while disk.aio_in_flight() > 0:
    disk.poll(1000)
'
  [ "$(qos pool/disk '.get("bottleneck")')" = own_maximum ]
}
wait_until 60 bottleneck
convect volume show pool/disk | grep -q 'bottleneck: *own maximum' || fail "$(convect volume show pool/disk)"
(timeout 20 "$CONVECT_BIN/convect" --json top </dev/null || true) | head -n 1 >top
[ "$(field '[p["volumes"] for p in d["policies"] if p["name"] == "gold"]' <top)" = '[3]' ] || fail "$(cat top)"
policy_history() { # convect history of the policy has the promise of the volumes that have it.
  [ "$(convect --json history pool --policy gold | field 'max(v or 0 for s in d["series"] if s["name"] == "promised_iops" for v in s["values"])')" = 300.0 ]
}
wait_until 30 policy_history
grep -q '^group accounting (2 volumes) *gold' status || fail "$(cat status)"
curl -sS --unix-socket "$CONVECT_SOCKET" http://convect/metrics >metrics
grep -q '^convect_volume_qos_level{pool="pool",volume="other"} 2' metrics || fail "$(grep qos metrics)"
grep -q '^convect_volume_qos_held_total{pool="pool",volume="disk"}' metrics || fail "$(grep qos metrics)"

say "without its policy it is held no more, at once"
convect volume set pool/disk --policy none
nbd_of "disk" '
def ended(error):
    assert error.value == 0, error
    return 1
for block in range(200):
    disk.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(4096)), block * 4096, ended)
while disk.aio_in_flight() > 0:
    disk.poll(1000)
'
[ "$(convect --json volume show pool/disk | field 'd.get("qos")')" = None ] || fail "it has a policy"

say "the same after kill -9"
convect volume set pool/disk --policy slow
kill_daemon
start_daemon
[ "$(qos pool/disk '["policy"]["name"]')" = slow ] || fail "the policy is lost"
[ "$(qos pool/clone '["policy"]["min_iops"]')" = 150 ] || fail "the policy's figures are lost"
[ "$(qos pool/ledger '["group"]')" = accounting ] || fail "the group is lost"
convect volume set pool/ledger --group none
[ "$(convect --json volume show pool/ledger | field 'd.get("qos")')" = None ] || fail "it is in its group"
for volume in disk clone other; do
  convect volume set pool/$volume --policy none
done
refused 'is used by group accounting' convect qos policy delete pool/gold
convect qos group delete pool/accounting
convect qos policy delete pool/slow
convect qos policy delete pool/gold
[ "$(convect --json qos policy list pool | field 'len(d["items"])')" = 5 ] || fail "policies are left"
say "passed"
