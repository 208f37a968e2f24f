"""Real receivers of alerts, for targets.sh: webhooks by HTTP and HTTPS, and mail servers of three kinds.

Writes the ports as JSON to ports.json. What comes by webhook goes to webhooks.jsonl, a line each with what the headers
said and when it came; mail to mails.jsonl. A webhook whose path is /refuse is refused as long as there is a file called `refuse`.
"""
import hashlib
import hmac
import http.server
import json
import os
import ssl
import threading
import time

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult

SECRET = b"between us"


def context():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain("receiver.pem", "receiver.key")
    return made


def note(name, value):
    with open(name, "a") as file:
        file.write(json.dumps(value) + "\n")


class Webhook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        refused = self.path == "/refuse" and os.path.exists("refuse")
        wanted = "sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest()
        signature = self.headers.get("X-Convect-Signature")
        if not refused:
            note("webhooks.jsonl", {
                "path": self.path,
                "signed": signature == wanted if signature else None,
                "kind": self.headers["Content-Type"],
                "tls": isinstance(self.connection, ssl.SSLSocket),
                "event": json.loads(body)["event"],
                "at": time.time(),
            })
        self.send_response(503 if refused else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


def webhook(tls):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    if tls:
        server.socket = context().wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class Mail:
    def __init__(self, name):
        self.name = name

    async def handle_DATA(self, server, session, envelope):
        note("mails.jsonl", {
            "server": self.name,
            "tls": session.ssl is not None or self.name == "tls",
            "login": session.auth_data,
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "text": envelope.content.decode(),
        })
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    good = data.login == b"convect" and data.password == b"pass word"
    return AuthResult(success=good, auth_data=data.login.decode())


class AnyPort(Controller):
    """A controller whose port the system chooses."""

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def mail(name, **more):
    controller = AnyPort(Mail(name), hostname="127.0.0.1", port=0, **more)
    controller.start()
    return controller.port


ports = {
    "http": webhook(False),
    "https": webhook(True),
    "plain": mail("plain"),
    "starttls": mail("starttls", tls_context=context(), require_starttls=True, auth_required=True,
                     authenticator=authenticate),
    "tls": mail("tls", ssl_context=context()),
    # It knows no STARTTLS.
    "bare": mail("bare"),
}
with open("ports.json.new", "w") as file:
    json.dump(ports, file)
os.rename("ports.json.new", "ports.json")
while True:
    time.sleep(60)
