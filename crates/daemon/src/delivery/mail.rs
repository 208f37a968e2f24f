//! Events by e-mail: SMTP (RFC 5321) with STARTTLS (RFC 3207) or TLS (RFC 8314).

use super::addresses::addresses;
use super::tls::certificates;
use api::v1::{Event, EventState, MailSecurity};
use lettre::message::{Mailbox, header::ContentType};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Message, SmtpTransport, Transport};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use units::Utc;

/// Maximum number of a mail server's addresses that are tried.
const ADDRESSES_MAX: usize = 4;
/// Time limit of one step of the SMTP dialogue.
const STEP_TIME: Duration = Duration::from_secs(10);

/// A mail server with sender, recipients and credentials.
pub struct Route<'a> {
    pub server: &'a str,
    pub port: Option<u16>,
    pub security: MailSecurity,
    pub login: Option<(&'a str, &'a str)>,
    pub from: &'a str,
    pub to: &'a [String],
    pub ca: Option<&'a str>,
}

/// Parses an e-mail address.
///
/// # Errors
/// A sentence that says what to do.
pub fn address(text: &str) -> Result<Mailbox, String> {
    text.parse().map_err(|_| {
        format!(
            "'{}' is not an e-mail address: write it like admin@example.com",
            text.escape_debug()
        )
    })
}

fn is_this_host(server: &str) -> bool {
    let address: Option<IpAddr> = server.parse().ok();
    server == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback())
}

impl Route<'_> {
    /// Rejects invalid routes and those that would send secrets unencrypted.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn check(&self) -> Result<(), String> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
        if self.server.is_empty() || self.server.len() > 253 || !self.server.chars().all(good) {
            let shown = self.server.escape_debug();
            return Err(format!(
                "'{shown}' is not a mail server: write a host name or an IP address"
            ));
        }
        if self.security == MailSecurity::Plain && !is_this_host(self.server) {
            return Err(format!(
                "mail to {} would be sent unencrypted over the network: use starttls or tls",
                self.server
            ));
        }
        if self.to.is_empty() || self.to.len() > 16 {
            return Err(format!(
                "a target has 1 to 16 recipients, not {}",
                self.to.len()
            ));
        }
        address(self.from)?;
        self.to.iter().try_for_each(|to| address(to).map(drop))
    }

    fn port(&self) -> u16 {
        self.port.unwrap_or(match self.security {
            MailSecurity::Starttls => 587,
            MailSecurity::Tls => 465,
            MailSecurity::Plain => 25,
        })
    }

    /// The public part of the route.
    pub fn shown(&self) -> String {
        format!("{} via {}:{}", self.to.join(", "), self.server, self.port())
    }

    fn tls(&self) -> Result<TlsParameters, String> {
        let mut parameters = TlsParameters::builder(self.server.to_owned());
        for certificate in self.ca.map(certificates).transpose()?.into_iter().flatten() {
            let certificate = Certificate::from_der(certificate.to_vec());
            let certificate = certificate.map_err(|error| error.to_string())?;
            parameters = parameters.add_root_certificate(certificate);
        }
        parameters.build_rustls().map_err(|error| error.to_string())
    }

    /// A transport to one of the server's addresses; the certificate is verified for its name.
    fn transport(&self, at: SocketAddr, host: &str) -> Result<SmtpTransport, String> {
        let tls = match self.security {
            MailSecurity::Starttls => Tls::Required(self.tls()?),
            MailSecurity::Tls => Tls::Wrapper(self.tls()?),
            MailSecurity::Plain => Tls::None,
        };
        let mut transport = SmtpTransport::builder_dangerous(at.ip().to_string())
            .port(self.port())
            .tls(tls)
            .timeout(Some(STEP_TIME))
            .hello_name(ClientId::Domain(host.to_owned()));
        if let Some((user, password)) = self.login {
            transport =
                transport.credentials(Credentials::new(user.to_owned(), password.to_owned()));
        }
        Ok(transport.build())
    }
}

/// Subject of a mail.
fn subject(host: &str, events: &[Event]) -> String {
    let state = |event: &Event| match event.state {
        EventState::Cleared => "cleared ",
        _ => "",
    };
    match events {
        [event] => {
            let (severity, code) = (event.severity.as_str(), event.code.as_str());
            let name = &event.subject.name;
            format!("[convect {host}] {}{severity} {code}: {name}", state(event))
        }
        events => {
            let worst = events.iter().map(|event| event.severity).max();
            let worst = worst.map_or("info", |worst| worst.as_str());
            format!("[convect {host}] {} events, {worst}", events.len())
        }
    }
}

fn body(host: &str, events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        let state = match event.state {
            EventState::Noted => "",
            EventState::Raised => " raised",
            EventState::Cleared => " cleared",
        };
        let (at, severity, code) = (Utc::from_unix(event.at_s), event.severity, event.code);
        let _ = write!(
            text,
            "{at}  {} {}{state}  (event {})\r\n{}\r\n",
            severity.as_str(),
            code.as_str(),
            event.number,
            event.message
        );
        if !event.advice.is_empty() {
            let _ = write!(text, "Action: {}\r\n", event.advice);
        }
        let _ = write!(text, "More: {}\r\n\r\n", event.runbook);
    }
    let _ = write!(text, "-- \r\nConvect on {host}\r\n");
    text
}

/// Mails events.
///
/// # Errors
/// Why the server did not accept them.
pub fn send(
    route: &Route<'_>,
    link_local: bool,
    host: &str,
    events: &[Event],
) -> Result<(), String> {
    route.check()?;
    let mut message = Message::builder()
        .from(address(route.from)?)
        .subject(subject(host, events))
        .header(ContentType::TEXT_PLAIN)
        .message_id(None)
        .date_now();
    for to in route.to {
        message = message.to(address(to)?);
    }
    let message = message
        .body(body(host, events))
        .map_err(|error| error.to_string())?;
    let refused = |why: String| {
        format!(
            "{}:{} did not accept the mail: {why}",
            route.server,
            route.port()
        )
    };
    let found = addresses(route.server, route.port(), link_local);
    let mut last = String::new();
    for at in found
        .map_err(|error| refused(error.to_string()))?
        .into_iter()
        .take(ADDRESSES_MAX)
    {
        match route.transport(at, host)?.send(&message) {
            Ok(_) => return Ok(()),
            // The server responded: another of its addresses would respond the same.
            Err(error) if error.is_permanent() || error.is_transient() => {
                return Err(refused(error.to_string()));
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(refused(last))
}
