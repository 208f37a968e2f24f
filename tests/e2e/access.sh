#!/usr/bin/env bash
# The door to the network with curl and openssl: TLS 1.3 alone, a certificate that stays, tokens, the log of changes
# that outlives kill -9 and tells when it was altered, as docs/access.md says how.
# timeout: 120
# shellcheck source=tests/e2e/lib.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

write_config
echo 'listen = "127.0.0.1:0"' >>convect.toml
start_daemon
address() { sed -n 's|.*the page is at https://\(.*\)/$|\1|p' daemon.log | tail -n 1; }
fingerprint() { sed -n "s|.*certificate's SHA-256 fingerprint is \(.*\)|\1|p" daemon.log | tail -n 1; }
ask() { curl -sS --cacert state/certificate.pem "https://$(address)$1" "${@:2}"; }
status() { ask "$1" -o /dev/null -w '%{http_code}' "${@:2}"; }

say "TLS 1.3 and nothing older, with the certificate that the log tells of"
openssl s_client -connect "$(address)" -tls1_3 </dev/null >tls 2>&1 || fail "$(cat tls)"
grep -q 'TLSv1.3' tls || fail "$(cat tls)"
if openssl s_client -connect "$(address)" -tls1_2 </dev/null >tls12 2>&1; then fail "it speaks TLS 1.2"; fi
shown="$(openssl x509 -in state/certificate.pem -outform der | sha256sum | cut -d' ' -f1)"
[ "$shown" = "$(fingerprint)" ] || fail "$shown is not $(fingerprint)"
[ "$(stat -c %a state/key.pem)" = 600 ] || fail "others may read the key"

say "nothing but the page without a token; the role decides with one"
[ "$(status /)" = 200 ] || fail "no page"
[ "$(status /v1/pools)" = 401 ] || fail "pools without a token"
[ "$(status /metrics)" = 401 ] || fail "metrics without a token"
viewer="$(convect token create look --role viewer 2>/dev/null)"
admin="$(convect token create all --role admin --expires 12h 2>/dev/null)"
ask /metrics -H "Authorization: Bearer $viewer" | grep -q '^convect_build_info' || fail "no metrics with a token"
pool="{\"name\":\"tank\",\"vdrives\":[{\"tier\":\"slow\",\"layout\":{\"kind\":\"concat\"},\"drives\":[\"file:$work/a?size=256M\"]}]}"
[ "$(status /v1/pools -H "Authorization: Bearer $viewer" -d "$pool")" = 403 ] || fail "a viewer made a pool"
[ "$(status /v1/pools -H "Authorization: Bearer $admin" -d "$pool")" = 201 ] || fail "an administrator made none"
convect token list | grep -q '^look  *viewer' || fail "$(convect token list)"
! grep -rq "$viewer" state || fail "a token is kept"

say "kill -9: tokens, certificate and log are there again, sessions are not"
kill -KILL "$daemon_pid"
wait "$daemon_pid" 2>/dev/null || true
before="$(fingerprint)"
start_daemon
[ "$before" = "$(fingerprint)" ] || fail "another certificate"
[ "$(status /v1/pools -H "Authorization: Bearer $viewer")" = 200 ] || fail "the token is gone"
convect audit >audit || fail "$(cat audit)"
grep -q ' all  *127.0.0.1  *PoolCreate  *asked .*name=tank' audit || fail "$(cat audit)"
convect token revoke look --yes >/dev/null
[ "$(status /v1/pools -H "Authorization: Bearer $viewer")" = 401 ] || fail "the token still counts"

say "the log's hashes are those that the document tells of"
python3 - <<'PYTHON'
import hashlib
last = "0" * 64
for line in open("state/audit.log"):
    digest, before, text = line.rstrip("\n").split(" ", 2)
    assert before == last, line
    assert hashlib.sha256((before + text).encode()).hexdigest() == digest, line
    last = digest
PYTHON

say "a log that was altered is told of"
stop_daemon
sed -i '3s/TokenCreate/PoolDestroy/' state/audit.log
start_daemon
grep -q 'the audit log was modified from entry 3 on' daemon.log || fail "$(tail -n 5 daemon.log)"
if convect audit >audit 2>told; then fail "it is taken as it is"; fi
grep -q 'from entry 3 on' told || fail "$(cat told)"
is_an_alert() { convect alert list --json | grep -q '"audit_altered"'; }
wait_until 20 is_an_alert

say "a certificate that is given is used, and one without its key is refused"
stop_daemon
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=given \
  -addext subjectAltName=IP:127.0.0.1 -keyout given.key -out given.pem 2>/dev/null
printf 'tls_certificate = "%s/given.pem"\n' "$work" >>convect.toml
if convect serve --config convect.toml 2>refused; then fail "it serves without a key"; fi
grep -q 'only one of tls_certificate and tls_key is set' refused || fail "$(cat refused)"
printf 'tls_key = "%s/given.key"\n' "$work" >>convect.toml
start_daemon
curl -sS --cacert given.pem "https://$(address)/" | grep -q '<title>Convect' || fail "it is not used"
