//! The checkpoint block of a shard.

use crate::input::{block, sealed};
use crate::memory::bounded;
use format::Checkpoint;
use units::{PoolId, ShardId};

fn decode(bytes: &[u8]) {
    let (pool, shard) = (PoolId(1), ShardId(0));
    let found = bounded(1 << 14, || Checkpoint::decode(bytes, pool, shard));
    let newer = bounded(1 << 14, || Checkpoint::is_newer(bytes, pool, shard));
    assert!(found.is_none() || !newer);
    if let Some(found) = found {
        assert_eq!(
            Checkpoint::decode(&found.encode(), pool, shard),
            Some(found)
        );
    }
}

pub(crate) fn run(data: &[u8]) {
    decode(data);
    decode(&sealed(block(data)));
}
