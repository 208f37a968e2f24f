#!/usr/bin/env bash
# Hostile guests, monitors, initiators, clients, tokens and readers of metrics, one after the other for a second each:
# others lose no session and come in, the daemon lives, and what it took comes back. ./dev campaign gives each a minute,
# and judges latency, too.
# timeout: 180
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

lab hostile --list >listed
attackers="$(wc -l <listed)"
[ "$attackers" -ge 27 ] || fail "$attackers attackers are listed"
lab hostile --seconds 1 --json hostile.json
seen="$(field 'sum(1 for row in d if row["attacker"])' <hostile.json)"
[ "$seen" = "$attackers" ] || fail "$seen of $attackers attackers were tried"
# One that there is not is refused with the names of those that there are.
lab hostile --only nobody 2>refused && fail "an unknown attacker was taken"
grep -q 'nbd-silent' refused || fail "$(cat refused)"
