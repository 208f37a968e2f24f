//! Answers that no other may overtake (RFC 7143, section 4.2.2.3): before one is sent, the initiator has received all
//! that went before it on the session's other connections, and nothing follows until it has received that one.
//! On one connection the order of what is sent does that by itself.

use crate::channel::Channel;
use crate::output::Pdu;
use crate::session::Session;
use std::collections::VecDeque;
use std::rc::Rc;

/// PDUs of an answer, and where they go.
struct Late {
    channel: Rc<Channel>,
    pdu: Pdu,
    fenced: bool,
}

/// A fence that is up.
pub(super) struct Fence {
    /// What has to have arrived: connections, with the status after the last that was sent.
    awaited: Vec<(Rc<Channel>, u32)>,
    /// Answers that wait; the first of them first.
    late: VecDeque<Late>,
}

impl Fence {
    /// Awaits what each of these connections was sent.
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
    /// Sends a part of an answer, unless it has to wait for one before it.
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

    /// Sends an answer that no other may overtake.
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

    /// Sends what has waited, as far as it may go now.
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
