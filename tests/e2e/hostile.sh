#!/usr/bin/env bash
# Hostile guests, monitors, initiators, clients, tokens and readers of metrics, one after the other for a second each:
# others lose no session and come in, the daemon lives, and what it took comes back. ./dev campaign gives each a minute,
# and judges latency, too.
# timeout: 180
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# Faults that are known and open: others are kept waiting by these, or threads are left.
open_faults='vhost-random-ring'
lab hostile --list | awk '{print $1}' | grep -vxE "$open_faults" >tried
lab hostile --seconds 1 --only "$(paste -sd, tried)" --json hostile.json
attackers="$(wc -l <tried)"
[ "$attackers" -ge 24 ] || fail "$attackers attackers are listed"
seen="$(field 'sum(1 for row in d if row["attacker"])' <hostile.json)"
[ "$seen" = "$attackers" ] || fail "$seen of $attackers attackers were tried"
# One that there is not is refused with the names of those that there are.
lab hostile --only nobody 2>refused && fail "an unknown attacker was taken"
grep -q 'nbd-silent' refused || fail "$(cat refused)"
