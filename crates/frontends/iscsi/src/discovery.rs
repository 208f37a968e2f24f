//! Text requests: SendTargets (RFC 7143, sections 11.10, 11.11 and appendix C).

use crate::channel::Channel;
use crate::output::Data;
use crate::pdu::{FINAL, Head, Made, NO_TAG, StatusNumber, reason, response};
use crate::session::Session;
use crate::target::{Granted, Target};
use crate::text::{self, Pairs};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const CONTINUE: u8 = 0x40;

/// A target and its portals; `local` is the address that the initiator used, reported for portals
/// that listen on all addresses.
fn list(target: &Target, granted: &Granted, local: IpAddr) -> Pairs {
    let mut pairs = vec![("TargetName".to_owned(), target.name.clone())];
    for (group, portal) in target.portals(granted) {
        let ip = if portal.ip().is_unspecified() {
            local
        } else {
            portal.ip()
        };
        let address = SocketAddr::new(ip, portal.port());
        pairs.push(("TargetAddress".to_owned(), format!("{address},{group}")));
    }
    pairs
}

impl Session {
    /// Targets that the initiator may see: in a normal session only its own.
    fn send_targets(&self, channel: &Channel, wanted: &str) -> Option<Pairs> {
        // According to the present access rights, which may be fewer than at login.
        let now = |(target, granted): &(Arc<Target>, Granted)| {
            let now = granted.of(&target.granted(&channel.peer));
            (!now.0.is_empty()).then(|| (target.clone(), now))
        };
        let reach: Vec<(Arc<Target>, Granted)> = match &self.normal {
            Some(normal) => now(&(normal.target.clone(), normal.granted.clone()))
                .into_iter()
                .collect(),
            None => self.reach.iter().filter_map(now).collect(),
        };
        let is_normal = self.normal.is_some();
        if wanted == "All" && is_normal || wanted.is_empty() && !is_normal {
            return None;
        }
        let all = wanted == "All" || wanted.is_empty();
        let wanted = wanted.to_ascii_lowercase();
        let listed = reach
            .iter()
            .filter(|(target, _)| all || target.name == wanted);
        Some(
            listed
                .flat_map(|(target, granted)| list(target, granted, channel.local))
                .collect(),
        )
    }

    /// Text request (11.10).
    pub(super) fn text(&self, channel: &Channel, head: &Head, data: &[u8]) {
        let left = channel.text_left.borrow_mut().take();
        let goes_on = left.filter(|(tag, _)| *tag == head.word_20() && data.is_empty());
        let answer = match (goes_on, text::parse(data)) {
            (Some((_, left)), _) => left,
            (None, Ok(pairs)) if head.is_final() && head.word_20() == NO_TAG => {
                self.answer_text(channel, &pairs)
            }
            _ => {
                return channel.reject(reason::PROTOCOL, head);
            }
        };
        self.send_text(channel, head, answer);
    }

    fn answer_text(&self, channel: &Channel, pairs: &Pairs) -> Vec<u8> {
        let mut replies = Pairs::new();
        for (key, value) in pairs {
            match key.as_str() {
                "SendTargets" => match self.send_targets(channel, value) {
                    Some(listed) => replies.extend(listed),
                    None => replies.push((key.clone(), "Reject".to_owned())),
                },
                // Negotiated at login and not changeable.
                "MaxRecvDataSegmentLength" => replies.push((key.clone(), "Reject".to_owned())),
                _ => replies.push((key.clone(), "NotUnderstood".to_owned())),
            }
        }
        text::encode(&replies)
    }

    /// Sends a text, or as much as fits one PDU of the initiator.
    fn send_text(&self, channel: &Channel, head: &Head, mut text: Vec<u8>) {
        let most = channel.agreed.segment_max as usize;
        let left = if text.len() > most {
            text.split_off(most)
        } else {
            Vec::new()
        };
        let (flags, tag) = match left.is_empty() {
            true => (FINAL, NO_TAG),
            false => (CONTINUE, self.tasks.borrow_mut().next_tag()),
        };
        if !left.is_empty() {
            *channel.text_left.borrow_mut() = Some((tag, left));
        }
        let made = Made::new(response::TEXT, flags, head.task_tag(), StatusNumber::Takes);
        channel.output.push(made.word(20, tag), Data::Own(text));
    }
}
