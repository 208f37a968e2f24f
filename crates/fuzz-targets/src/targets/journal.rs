//! A page of the journal with all of its records.

use crate::input::{PAGE, block, sealed};
use crate::memory::bounded;
use format::{JournalHeader, JournalPage, open_page};
use units::{PoolId, ShardId};

/// Records take several times as much memory as space in the page.
const LIMIT: usize = 256 << 10;

fn decode(bytes: &[u8]) {
    let (pool, shard) = (PoolId(1), ShardId(0));
    let header = bounded(LIMIT, || JournalHeader::read(bytes, pool, shard));
    match bounded(LIMIT, || open_page(bytes, pool, shard)) {
        Ok(None) => assert_eq!(header, None),
        Err(_) => assert!(header.is_some()),
        Ok(Some((found, records))) => {
            assert_eq!(header, Some(found));
            let mut page = JournalPage::new();
            for record in &records {
                assert!(page.push(record), "the records of a page fit into a page");
            }
            let mut again = vec![0; PAGE];
            page.seal(found, &mut again);
            assert_eq!(open_page(&again, pool, shard), Ok(Some((found, records))));
        }
    }
}

pub(crate) fn run(data: &[u8]) {
    decode(data);
    decode(&sealed(block(data)));
}
