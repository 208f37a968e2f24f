use super::*;
use crate::shard::dispatch::{Asker, InFlight};
use crate::shard::probe::{Probe, run, turns};
use block::{CompletionQueue, IoBuf, Op, OpFlags};
use units::{BLOCK, CHUNK};

const READS: u64 = 64;

#[test]
fn others_have_their_turns_while_one_batch_of_much_is_carried_out() {
    run(|handle| async move {
        let probe = Probe::open(&handle, "serve-turns").await;
        let (shard, in_flight) = (probe.shard.clone(), InFlight::default());
        let (port, done) = (ShardPort::new(handle.remote()), CompletionQueue::new());
        handle.spawn(shard.serve(port.clone()));
        // The chunks' pages are in memory, and what is read are holes: nothing has to be waited for.
        let block = IoBuf::from_bytes(vec![7; BLOCK].into());
        for chunk in 0..READS {
            let by = By::write(probe.volume);
            let offset = chunk * CHUNK as u64;
            probe.shard.write(by, offset, &block).await.unwrap();
        }
        for (len, least) in [(CHUNK - BLOCK, READS / 2 - 2), (BLOCK, 0)] {
            for tag in 0..READS {
                port.push(ShardOp {
                    volume: probe.volume,
                    op: Op {
                        tag,
                        kind: OpKind::Read,
                        flags: OpFlags::default(),
                        offset: tag * CHUNK as u64 + BLOCK as u64,
                        len: len as u64,
                        buf: IoBuf::zeroed(len),
                        done: done.clone(),
                    },
                    by: Asker::default(),
                    under_way: in_flight.one_more(),
                });
            }
            let ended = async {
                for tag in 0..READS {
                    let completion = done.next().await;
                    assert!(completion.result.is_ok());
                    assert_eq!(completion.tag, tag, "in their order");
                }
            };
            let turns = turns(&probe, ended).await;
            let most = if least == 0 { 8 } else { 4 * READS };
            assert!(
                (least..=most).contains(&turns),
                "{turns} turns, {len} bytes each"
            );
        }
        assert_eq!(in_flight.get(), 0);
        port.close();
    });
}
