//! Handshake options: parsing and validation of their data.

/// Maximum length of an export or context name, in bytes ("strings ... MUST NOT exceed 4096
/// bytes").
const NAME_MAX: u32 = 4096;

/// Maximum number of queries of an option: each is compared with every context.
const QUERIES_MAX: usize = 64;

/// A parser of an option's data; every step returns `None` beyond the end.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(field)
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn string(&mut self) -> Option<&'a str> {
        let len = self.u32()?;
        if len > NAME_MAX {
            return None;
        }
        std::str::from_utf8(self.take(len as usize)?).ok()
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// The data of `INFO` and `GO`.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct InfoRequest<'a> {
    pub name: &'a str,
    /// Requested kinds of information.
    pub wanted: Vec<u16>,
}

impl<'a> InfoRequest<'a> {
    /// `None` when the data is malformed.
    pub(crate) fn parse(data: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(data);
        let name = fields.string()?;
        let count = fields.u16()?;
        let wanted = (0..count)
            .map(|_| fields.u16())
            .collect::<Option<Vec<u16>>>()?;
        fields.end()?;
        Some(Self { name, wanted })
    }
}

/// The data of `LIST_META_CONTEXT` and `SET_META_CONTEXT`.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct ContextRequest<'a> {
    pub name: &'a str,
    queries: Vec<&'a str>,
}

impl<'a> ContextRequest<'a> {
    /// `None` when the data is malformed.
    pub(crate) fn parse(data: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(data);
        let name = fields.string()?;
        let count = fields.u32()?;
        // Each query has at least four bytes, so the data limits the count.
        if count as usize > QUERIES_MAX.min(data.len() / 4) {
            return None;
        }
        let queries = (0..count)
            .map(|_| fields.string())
            .collect::<Option<Vec<&str>>>()?;
        fields.end()?;
        Some(Self { name, queries })
    }

    /// Whether a `SET` selects a context.
    pub(crate) fn selects(&self, context: &str) -> bool {
        self.queries.contains(&context)
    }

    /// Whether a `LIST` includes a context: a query may be a prefix of its name, up to a colon.
    pub(crate) fn lists(&self, context: &str) -> bool {
        let begins = |query: &&str| query.ends_with(':') && context.starts_with(query);
        self.queries.is_empty() || self.selects(context) || self.queries.iter().any(begins)
    }

    /// Whether a reply could include any context of a namespace (given with its colon).
    pub(crate) fn is_about(&self, namespace: &str) -> bool {
        let mut queries = self.queries.iter();
        self.queries.is_empty() || queries.any(|query| query.starts_with(namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Vec<u8> {
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }

    #[test]
    fn info_request_is_parsed() {
        let mut data = string("disk");
        data.extend_from_slice(&[0, 2, 0, 3, 0, 1]);
        let request = InfoRequest::parse(&data).unwrap();
        assert_eq!((request.name, &*request.wanted), ("disk", &[3, 1][..]));
    }

    #[test]
    fn malformed_info_requests_are_refused() {
        let good = [string("disk"), vec![0, 1, 0, 3]].concat();
        for cut in 0..good.len() {
            assert_eq!(InfoRequest::parse(&good[..cut]), None, "cut at {cut}");
        }
        let longer = [good, vec![0]].concat();
        assert_eq!(InfoRequest::parse(&longer), None, "bytes left over");
        let long_name = [string(&"x".repeat(4097)), vec![0, 0]].concat();
        assert_eq!(InfoRequest::parse(&long_name), None, "name too long");
        assert_eq!(
            InfoRequest::parse(&[0, 0, 0, 1, 0xff, 0, 0]),
            None,
            "no UTF-8"
        );
    }

    #[test]
    fn contexts_are_selected_by_name_and_listed_by_namespace() {
        for (queries, selects, lists) in [
            (&[][..], false, true),
            (&["base:allocation"], true, true),
            (&["base:"], false, true),
            (&["qemu:dirty-bitmap:a"], false, false),
            (&["base:other", "base:allocation"], true, true),
            (&["base:alloc"], false, false),
            (&[":", ""], false, false),
        ] {
            let mut data = string("");
            data.extend_from_slice(&(queries.len() as u32).to_be_bytes());
            for query in queries {
                data.extend_from_slice(&string(query));
            }
            let request = ContextRequest::parse(&data).unwrap();
            assert_eq!(
                (
                    request.selects("base:allocation"),
                    request.lists("base:allocation")
                ),
                (selects, lists),
                "{queries:?}"
            );
        }
    }

    #[test]
    fn excessive_queries_are_refused() {
        let data = [string(""), u32::MAX.to_be_bytes().to_vec()].concat();
        assert_eq!(ContextRequest::parse(&data), None);
        for (count, is_taken) in [(64u32, true), (65, false)] {
            let queries = string("base:").repeat(count as usize);
            let data = [string(""), count.to_be_bytes().to_vec(), queries].concat();
            assert_eq!(ContextRequest::parse(&data).is_some(), is_taken, "{count}");
        }
    }
}
