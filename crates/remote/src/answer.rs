//! Answers of HTTP (RFC 9112) that were read to the end of their connection.

/// The status and the body of an answer that was read to its end.
pub fn split(answer: &[u8]) -> Option<(u16, &[u8])> {
    let end = answer.windows(4).position(|at| at == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let body = &answer[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.get(2..5)?;
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let whole = match name.to_ascii_lowercase().as_str() {
            "content-length" => value.trim().parse::<usize>().ok()? == body.len(),
            "transfer-encoding" => false,
            _ => true,
        };
        if !whole {
            return None;
        }
    }
    Some((status.parse().ok()?, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_is_taken() {
        let good = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(split(good), Some((200, &b"{}"[..])));
        let none = b"HTTP/1.1 204 No Content\r\ndate: x\r\n\r\n";
        assert_eq!(split(none), Some((204, &b""[..])));
        for bad in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}",
            b"HTTP/1.1 200 OK\r\ncontent-length: 2",
            b"SSH-2.0\r\n\r\n",
            b"HTTP/1.1 \xff\r\n\r\n",
        ] {
            assert_eq!(split(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }
}
