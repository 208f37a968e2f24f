//! Fenced responses, which no other may overtake (RFC 7143, section 4.2.2.3): before one is sent,
//! everything sent before on the session's other connections must be acknowledged, and nothing is
//! sent after it until it is acknowledged. On a single connection the order of sending suffices.

use crate::channel::Channel;
use crate::output::Pdu;
use crate::session::Session;
use std::collections::VecDeque;
use std::rc::Rc;

/// PDUs of a response, and their connection.
struct Late {
    channel: Rc<Channel>,
    pdu: Pdu,
    fenced: bool,
}

/// An active fence.
pub(super) struct Fence {
    /// Acknowledgements awaited: connections, with the status number after the last one sent.
    awaited: Vec<(Rc<Channel>, u32)>,
    /// Delayed responses, in order.
    late: VecDeque<Late>,
}

impl Fence {
    /// Awaits acknowledgement of everything sent on these connections.
    fn await_all(&mut self, session: &Session, channels: &[Rc<Channel>]) {
        for channel in channels {
            let promised = channel.output.promised();
            if !channel.has_acknowledged(promised) {
                session.ping(channel);
                self.awaited.push((channel.clone(), promised));
            }
        }
    }
}

impl Session {
    /// Sends a part of a response, unless it must wait for a fence.
    pub(super) fn send(&self, channel: &Rc<Channel>, pdu: Pdu) {
        match &mut *self.fence.borrow_mut() {
            None => channel.output.push_pdu(pdu),
            Some(fence) => fence.late.push_back(Late {
                channel: channel.clone(),
                pdu,
                fenced: false,
            }),
        }
    }

    /// Sends a fenced response.
    pub(super) fn send_fenced(&self, channel: &Rc<Channel>, pdu: Pdu) {
        let mut fence = self.fence.borrow_mut();
        if fence.is_none() && self.channels.borrow().len() < 2 {
            return channel.output.push_pdu(pdu);
        }
        let late = Late {
            channel: channel.clone(),
            pdu,
            fenced: true,
        };
        match &mut *fence {
            Some(fence) => fence.late.push_back(late),
            None => {
                let mut new = Fence {
                    awaited: Vec::new(),
                    late: VecDeque::from([late]),
                };
                new.await_all(self, &self.others(channel));
                *fence = Some(new);
                drop(fence);
                self.check_fence();
            }
        }
    }

    /// Sends delayed responses as far as acknowledgements permit.
    pub(super) fn check_fence(&self) {
        let mut up = self.fence.borrow_mut();
        let Some(fence) = &mut *up else {
            return;
        };
        loop {
            let awaited = &mut fence.awaited;
            awaited.retain(|(channel, number)| !channel.has_acknowledged(*number));
            if !awaited.is_empty() {
                return;
            }
            let Some(late) = fence.late.pop_front() else {
                break;
            };
            late.channel.output.push_pdu(late.pdu);
            if late.fenced {
                fence.await_all(self, std::slice::from_ref(&late.channel));
            }
            if fence.late.front().is_some_and(|next| next.fenced) {
                let others = fence.late.front().map(|next| self.others(&next.channel));
                fence.await_all(self, &others.unwrap_or_default());
            }
        }
        *up = None;
    }
}
