//! Numbers of the NBD protocol, as in its specification, `doc/proto.md` of the NBD project.

/// First word of the server's greeting ("Handshake").
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Second word of the greeting, and first of every option.
pub const OPTION: u64 = 0x4948_4156_454f_5054;
/// First word of an option's reply.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// Fixed newstyle, and no zeroes after the handshake; both sides.
pub const HANDSHAKE_FLAGS: u16 = 1 | 2;
/// `NBD_OPT_LIST`.
pub const OPT_LIST: u32 = 3;
/// `NBD_OPT_INFO`.
pub const OPT_INFO: u32 = 6;
/// `NBD_OPT_GO`.
pub const OPT_GO: u32 = 7;
/// `NBD_OPT_STRUCTURED_REPLY`.
pub const OPT_STRUCTURED_REPLY: u32 = 8;
/// `NBD_OPT_SET_META_CONTEXT`.
pub const OPT_SET_META_CONTEXT: u32 = 10;
/// `NBD_REP_ACK`.
pub const REP_ACK: u32 = 1;
/// `NBD_REP_INFO`.
pub const REP_INFO: u32 = 3;
/// `NBD_INFO_EXPORT`.
pub const INFO_EXPORT: u16 = 0;
/// First word of a request.
pub const REQUEST: u32 = 0x2560_9513;
/// First word of a simple reply.
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
/// `NBD_CMD_READ`.
pub const READ: u16 = 0;
/// `NBD_CMD_WRITE`.
pub const WRITE: u16 = 1;
/// `NBD_CMD_DISC`.
pub const DISCONNECT: u16 = 2;
/// `NBD_CMD_FLUSH`.
pub const FLUSH: u16 = 3;
/// `NBD_CMD_TRIM`.
pub const TRIM: u16 = 4;
/// `NBD_CMD_WRITE_ZEROES`.
pub const WRITE_ZEROES: u16 = 6;
/// `NBD_CMD_BLOCK_STATUS`.
pub const BLOCK_STATUS: u16 = 7;
/// `NBD_CMD_FLAG_FUA`.
pub const FUA: u16 = 1;
/// Bytes of a request's head.
pub const REQUEST_LEN: usize = 28;
/// Bytes of a simple reply's head.
pub const REPLY_LEN: usize = 16;

/// An option ("Option haggling").
pub fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Payload of the options `INFO` and `GO`, without requests for more information.
pub fn export_data(export: &str) -> Vec<u8> {
    let mut bytes = (export.len() as u32).to_be_bytes().to_vec();
    bytes.extend(export.as_bytes());
    bytes.extend([0, 0]);
    bytes
}

/// A request's head.
pub fn request(
    command: u16,
    flags: u16,
    cookie: u64,
    offset: u64,
    length: u32,
) -> [u8; REQUEST_LEN] {
    let mut head = [0; REQUEST_LEN];
    head[..4].copy_from_slice(&REQUEST.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&command.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..24].copy_from_slice(&offset.to_be_bytes());
    head[24..].copy_from_slice(&length.to_be_bytes());
    head
}

/// A simple reply's head: the request's number and the error, 0 for none.
///
/// # Errors
/// When it is none.
pub fn reply(head: &[u8; REPLY_LEN]) -> Result<(u64, u32), String> {
    let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
    match word(0) {
        SIMPLE_REPLY => Ok((u64::from(word(8)) << 32 | u64::from(word(12)), word(4))),
        other => Err(format!(
            "a reply begins with {other:#x}, not {SIMPLE_REPLY:#x}"
        )),
    }
}
