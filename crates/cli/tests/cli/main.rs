//! Tests of the command line, without a daemon and with a scripted one.

mod commands;
mod errors;
mod explain;
mod figures;
mod help;
mod lab;
mod lists;
mod manual;
mod scripted;
mod serve;
mod thin;
mod wear;
mod why;
mod words;
