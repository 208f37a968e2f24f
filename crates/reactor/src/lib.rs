//! One thread's loop: tasks, timers, io_uring, sockets; and the ways to reach it from elsewhere.
//!
//! Responsible for: running futures of one thread without locks between them, and waiting for
//! the kernel only when nothing is left to do.
//! Leaves out: what the tasks do. The engine runs on a [`Handle`] alone, which a simulation makes
//! with a clock of its own and no ring ([`Handle::simulated`]).

mod budget;
mod connections;
pub mod control;
mod cores;
mod doorbell;
mod executor;
mod files;
mod frontend;
mod limit;
mod listener;
mod log_limit;
mod net;
mod pace;
mod read_buffer;
mod readiness;
mod remote;
mod resolve;
mod ring;
mod ringfile;
mod row;
mod run;
mod shares;
mod sidering;
mod signals;
mod sync;
mod timer;
mod unix_socket;
mod waiting;
mod within;

pub use budget::{Account, Budget, OWN};
pub use connections::{Connections, Listening, Seat};
pub use cores::{Cores, CoresError};
pub use doorbell::Doorbell;
pub use executor::{Clock, Handle, mix};
pub use files::{
    FileIdentity, open_regular, read_regular, remove_file_if, sync_folder, sync_folder_of,
};
pub use frontend::{
    Export, FrontEnd, Keeper, Kept, NoKeeper, OpenFor, Parameter, SessionInfo, Space, StartExport,
};
pub use limit::{Limit, Permit, Urgency};
pub use listener::{Bound, ListenAddress, Listener};
pub use log_limit::LogLimit;
pub use net::{Closer, DetachedStream, Stream};
pub use pace::Pace;
pub use read_buffer::{ReadBuffer, Source};
pub use readiness::{Interest, Readiness};
pub use remote::Remote;
pub use resolve::resolve;
pub use ring::moved;
pub use ringfile::RingFile;
pub use row::Row;
pub use run::{Reactor, ReactorThread};
pub use shares::{Full, Origin, OriginCounts, PeerAddress, Share, ShareLimits, Shares};
pub use sidering::{Answer, Ends, Meaning};
pub use signals::Signals;
pub use sync::Event;
pub use timer::Sleep;
pub use unix_socket::{SocketAccess, UnixSocket};
pub use waiting::{is_loop, may_wait};
pub use within::{SECOND_NS, in_time, within};
