//! Tests of the daemon over a fake engine (`kept`: the real one).

mod access;
mod answers;
mod common;
mod conditions;
mod config;
mod doors;
mod events;
mod exports;
mod fake;
mod fills;
mod goals;
mod history;
mod http;
mod kept;
mod metrics;
mod playback;
mod pools;
mod qos;
mod ram;
mod schedules;
mod scrubs;
mod smart;
mod state;
mod streams;
mod targets;
mod wear;
