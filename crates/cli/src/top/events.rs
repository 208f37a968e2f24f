//! Parser of server-sent events (HTML Living Standard, section 9.2), as far as the daemon uses
//! them.

use crate::Failure;
use crate::show::read;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Read};

/// Maximum line length, in bytes.
const LINE_MAX: u64 = 16 << 20;

/// Payloads of the events of one name, in order; a failure when the stream ends.
pub fn told<T: DeserializeOwned>(
    stream: impl Read,
    wanted: &str,
) -> impl Iterator<Item = Result<T, Failure>> {
    let mut lines = BufReader::new(stream);
    let mut name = String::new();
    std::iter::from_fn(move || {
        loop {
            let mut line = Vec::new();
            let read_to_end = (&mut lines).take(LINE_MAX).read_until(b'\n', &mut line);
            let text = String::from_utf8_lossy(&line);
            match read_to_end {
                Err(error) => {
                    let text = format!("connection to the daemon lost: {error}");
                    return Some(Err(Failure::Failed(text)));
                }
                Ok(_) if !text.ends_with('\n') => {
                    let text = "the daemon closed the connection: it stopped, or too many clients \
                     are watching";
                    return Some(Err(Failure::Failed(text.to_owned())));
                }
                Ok(_) => {}
            }
            if let Some(event) = text.strip_prefix("event: ") {
                event.trim_end().clone_into(&mut name);
            } else if let Some(data) = text.strip_prefix("data: ")
                && name == wanted
            {
                return Some(read(data.as_bytes()));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use api::v1::LiveState;

    #[test]
    fn states_are_parsed_and_end_of_stream_is_an_error() {
        let state = r#"{"at_ms":1,"whole":true,"changes":0,"pools":[],"volumes":[]}"#;
        let text = format!("event: map\ndata: {{}}\n\nevent: state\ndata: {state}\n\n");
        let mut states = told::<LiveState>(text.as_bytes(), "state");
        assert_eq!(states.next().unwrap().unwrap().at_ms, 1);
        assert!(states.next().unwrap().is_err());
    }
}
