#!/usr/bin/env bash
# Alerts that are delivered, to real receivers: Python's HTTP server with and without TLS, and aiosmtpd in plain, with
# STARTTLS and a log-in, and with TLS. Signed, once each, again after a receiver was away or the daemon was killed, and
# with nothing of a secret to be read.
# timeout: 180
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

new=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
openssl req -x509 "${new[@]}" -days 2 -subj /CN=ca -keyout ca.key -out ca.pem 2>/dev/null
openssl req "${new[@]}" -subj /CN=receiver -keyout receiver.key -out receiver.csr 2>/dev/null
echo 'subjectAltName=IP:127.0.0.1,DNS:localhost' >names
openssl x509 -req -in receiver.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out receiver.pem 2>/dev/null
# Others who run this do not read what comes.
python3 "$root/tests/e2e/receivers.py" </dev/null >receivers.log 2>&1 &
receivers_pid=$!
defer 'kill $receivers_pid 2>/dev/null'
touch webhooks.jsonl mails.jsonl
wait_until 30 test -f ports.json
port() { field "d['$1']" <ports.json; }

came() { # FILE EXPRESSION of a line `e`: how many lines it is true of
  python3 -c 'import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
print(sum(bool(eval(sys.argv[2])) for e in lines))' "$1" "$2"
}
has_come() { [ "$(came "$1" "$2")" -ge 1 ]; }

write_config
cat >>convect.toml <<TOML
[[alert_target]]
name = "of-the-file"
to = { kind = "webhook", url = "http://127.0.0.1:$(port http)/file" }
TOML
start_daemon
convect pool create tank slow mirror "file:$work/a.img?size=256M" "file:$work/b.img?size=256M"
b="file:$work/b.img"

say "targets are made, and tried"
echo 'between us' >secret
echo 'pass word' >password
create() { convect alert target create "$@"; }
create webhook signed --url "http://127.0.0.1:$(port http)/signed-path" --secret-file secret
create webhook tls --url "https://127.0.0.1:$(port https)/tls" --trust ca.pem
create webhook picky --url "http://127.0.0.1:$(port http)/refuse" --severity critical
create email plain --mail-server 127.0.0.1 --port "$(port plain)" --security plain \
  --from convect@example.com --to a@example.com --to b@example.com
create email starttls --mail-server localhost --port "$(port starttls)" --trust ca.pem --user convect \
  --password-file password --from convect@example.com --to ops@example.com
create email mailtls --mail-server 127.0.0.1 --port "$(port tls)" --security tls --trust ca.pem \
  --from 'Convect <convect@example.com>' --to ops@example.com
for name in signed tls picky plain starttls mailtls of-the-file; do
  convect alert target test "$name" >/dev/null || fail "$name is not reached"
done
[ "$(came webhooks.jsonl "e['event']['code'] == 'test'")" = 4 ] || fail "$(cat webhooks.jsonl)"
[ "$(came mails.jsonl "'test: ' in e['text']")" = 3 ] || fail "$(cat mails.jsonl)"
[ "$(came webhooks.jsonl "e['signed'] is True")" = 1 ] || fail "signed: $(cat webhooks.jsonl)"
[ "$(came webhooks.jsonl "e['signed'] is False")" = 0 ] || fail "a signature is wrong"
[ "$(came webhooks.jsonl "e['tls']")" = 1 ] || fail "not by TLS"

say "what is not trusted, not logged in to or not private is refused"
create webhook stranger --url "https://127.0.0.1:$(port https)/tls"
if convect alert target test stranger 2>refused; then fail "it trusts anybody"; fi
grep -qi 'certificate' refused || fail "$(cat refused)"
create email nobody --mail-server 127.0.0.1 --port "$(port starttls)" --trust ca.pem --from a@example.com --to b@example.com
if convect alert target test nobody 2>refused; then fail "it needs no log-in"; fi
create email open --mail-server localhost --port "$(port bare)" --from a@example.com --to b@example.com
if convect alert target test open 2>refused; then fail "mail goes through without TLS"; fi
[ "$(came mails.jsonl "e['server'] == 'bare'")" = 0 ] || fail "it was sent in plain"
if create email far --mail-server mail.example.com --security plain --from a@b.c --to a@b.c 2>refused; then fail "plain to others"; fi
grep -q 'be sent unencrypted' refused || fail "$(cat refused)"
for name in stranger nobody open; do convect alert target delete "$name" --yes >/dev/null; done
if convect alert target delete of-the-file --yes 2>refused; then fail "the file's target is deleted"; fi

say "secrets are not shown, and others cannot read them"
convect alert target list | tee listed
convect alert target list --json >>listed
convect audit >>listed
! grep -E 'between us|pass word|signed-path' listed || fail "a secret is shown"
! grep -E 'between us|pass word' daemon.log || fail "a secret is logged"
[ "$(stat -c %a state/targets.json)" = 600 ] || fail "others may read the secrets"

say "an alert reaches all of them, raised and cleared, once"
touch refuse
: >webhooks.jsonl
: >mails.jsonl
convect pool offline tank "$b"
for path in signed-path tls file; do
  wait_until 40 has_come webhooks.jsonl "e['path'] == '/$path' and e['event']['code'] == 'leg_out'"
done
for server in plain starttls tls; do
  wait_until 40 has_come mails.jsonl "e['server'] == '$server' and 'critical leg_out' in e['text']"
done
has_come mails.jsonl "e['to'] == ['a@example.com', 'b@example.com'] and e['server'] == 'plain'" || fail "$(cat mails.jsonl)"
has_come mails.jsonl "e['login'] == 'convect' and e['tls']" || fail "no log-in: $(cat mails.jsonl)"
grep -q 'Action: ' mails.jsonl || fail "no advice: $(cat mails.jsonl)"

say "a receiver that is away is told later, also by the next daemon"
failures() { convect alert target list --json | field '[t["failures"] for t in d["items"] if t["name"] == "picky"][0]'; }
has_failed() { [ "$(failures)" -ge 3 ]; }
wait_until 60 has_failed
delivery_fails() { convect alert list --json | grep -q '"delivery_failed"'; }
wait_until 20 delivery_fails
kill_daemon
start_daemon
rm refuse
wait_until 60 has_come webhooks.jsonl "e['path'] == '/refuse' and e['event']['code'] == 'leg_out'"
convect pool online tank "$b"
wait_until 60 has_come webhooks.jsonl "e['path'] == '/refuse' and e['event']['state'] == 'cleared'"
wait_until 60 has_come webhooks.jsonl "e['path'] == '/tls' and e['event']['state'] == 'cleared' and e['event']['code'] == 'leg_out'"
[ "$(came webhooks.jsonl "e['path'] == '/refuse' and e['event']['code'] == 'leg_out'")" = 2 ] || fail "$(cat webhooks.jsonl)"
[ "$(came webhooks.jsonl "e['path'] == '/signed-path' and e['event']['state'] == 'raised' and e['event']['code'] == 'leg_out'")" = 1 ] ||
  fail "it was told twice: $(cat webhooks.jsonl)"
# Only what is critical was for it.
[ "$(came webhooks.jsonl "e['path'] == '/refuse' and e['event']['severity'] != 'critical'")" = 0 ] || fail "it was told of more"
! delivery_fails || wait_until 20 eval '! delivery_fails'

say "a receiver that takes the connection and says nothing holds nobody up"
python3 - <<'PYTHON' &
import os, socket, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
open("silent", "w").write(str(s.getsockname()[1]))
connection, _ = s.accept()
open("taken", "w").close()
while connection.recv(65536):
    pass
at = time.time()
with open("given-up.new", "w") as file:
    file.write(str(at))
os.rename("given-up.new", "given-up")
PYTHON
silent_pid=$!
defer 'kill $silent_pid 2>/dev/null'
wait_until 10 test -s silent
# By its name it comes before the others.
create webhook a-silent --url "http://127.0.0.1:$(cat silent)/"
: >webhooks.jsonl
convect pool offline tank "$b"
wait_until 60 test -f taken
wait_until 60 has_come webhooks.jsonl "e['path'] == '/signed-path'"
convect pool list >/dev/null
wait_until 60 test -f given-up
# When it came, not when it was looked for: that may be late on a busy machine.
[ "$(came webhooks.jsonl "e['path'] == '/signed-path' and e['at'] < $(cat given-up)")" -ge 1 ] ||
  fail "the others were told after it was given up"
stop_daemon
