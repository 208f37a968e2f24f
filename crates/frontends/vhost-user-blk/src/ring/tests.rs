//! The ring against a correct and a faulty driver.

use super::*;
use virtio_queue::QueueT;
use vm_memory::{Bytes, GuestMemoryMmap};

const TABLE: u64 = 0;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const SIZE: u16 = 8;

struct Driver {
    map: Arc<GuestMap>,
    available: u16,
}

impl Driver {
    fn new(event_idx: bool) -> (Self, Ring) {
        let map = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), 0x3000)]).unwrap();
        let map = Arc::new(GuestMap::from(map));
        let mut queue = Queue::new(SIZE).unwrap();
        queue.set_size(SIZE);
        queue
            .try_set_desc_table_address(GuestAddress(TABLE))
            .unwrap();
        queue
            .try_set_avail_ring_address(GuestAddress(AVAILABLE))
            .unwrap();
        queue.try_set_used_ring_address(GuestAddress(USED)).unwrap();
        queue.set_event_idx(event_idx);
        queue.set_ready(true);
        let ring = Ring::new(&queue, map.clone()).unwrap();
        (Self { map, available: 0 }, ring)
    }

    fn put(&self, at: u64, half: u16) {
        self.map.write_obj(half, GuestAddress(at)).unwrap();
    }

    fn half(&self, at: u64) -> u16 {
        self.map.read_obj(GuestAddress(at)).unwrap()
    }

    fn make_available(&mut self, heads: &[u16]) {
        for head in heads {
            self.put(AVAILABLE + 4 + 2 * u64::from(self.available % SIZE), *head);
            self.available = self.available.wrapping_add(1);
        }
        self.put(AVAILABLE + 2, self.available);
    }

    fn used(&self, at: u64) -> (u32, u32) {
        let entry = |offset| self.map.read_obj(GuestAddress(USED + 4 + 8 * at + offset));
        (entry(0).unwrap(), entry(4).unwrap())
    }
}

fn take_all(ring: &mut Ring) -> Vec<u16> {
    std::iter::from_fn(|| ring.take().unwrap()).collect()
}

#[test]
fn available_chains_are_taken_once_in_order() {
    let (mut driver, mut ring) = Driver::new(true);
    assert!(take_all(&mut ring).is_empty());
    let mut taken = Vec::new();
    for round in 0..20_000u16 {
        let heads = [round % 7, 3, 1];
        driver.make_available(&heads);
        assert_eq!(take_all(&mut ring), heads, "round {round}");
        taken.push(ring.next_avail());
    }
    assert_eq!(taken.last(), Some(&60_000));
}

#[test]
fn batch_is_visible_when_published() {
    let (driver, mut ring) = Driver::new(true);
    ring.put(5, 4097);
    ring.put(2, 1);
    assert_eq!(driver.half(USED + 2), 0);
    ring.publish();
    assert_eq!(driver.half(USED + 2), 2);
    assert_eq!([driver.used(0), driver.used(1)], [(5, 4097), (2, 1)]);
    for head in 0..7 {
        ring.put(head, 0);
    }
    ring.publish();
    assert_eq!(driver.half(USED + 2), 9);
    assert_eq!(driver.used(0), (6, 0), "around the end");
}

#[test]
fn event_index_selects_notifications() {
    let (driver, mut ring) = Driver::new(true);
    let event = AVAILABLE + 4 + 2 * u64::from(SIZE);
    let mut wants = |answers: u16, event_at: u16| {
        driver.put(event, event_at);
        (0..answers).for_each(|_| ring.put(0, 0));
        ring.publish();
        ring.wants_call()
    };
    assert!(wants(1, 0), "the first response was requested");
    assert!(!wants(1, 5), "the sixth is requested");
    assert!(!wants(2, 5));
    assert!(wants(3, 5), "the requested one is among these");
    assert!(!wants(1, 5));
}

#[test]
fn flags_replace_event_indices() {
    let (mut driver, mut ring) = Driver::new(false);
    ring.put(0, 0);
    ring.publish();
    assert!(ring.wants_call());
    driver.put(AVAILABLE, AVAIL_NO_INTERRUPT);
    assert!(!ring.wants_call());
    ring.disable_kicks();
    assert_eq!(driver.half(USED), USED_NO_NOTIFY);
    assert!(!ring.enable_kicks());
    assert_eq!(driver.half(USED), 0);
    driver.make_available(&[1]);
    assert!(ring.enable_kicks(), "it arrived before kicks were enabled");
}

#[test]
fn kick_is_requested_at_the_next_entry() {
    let (mut driver, mut ring) = Driver::new(true);
    let event = USED + 4 + 8 * u64::from(SIZE);
    driver.make_available(&[1, 2]);
    assert_eq!(take_all(&mut ring), [1, 2]);
    ring.disable_kicks();
    assert!(!ring.enable_kicks());
    assert_eq!(driver.half(event), 2);
    driver.make_available(&[3]);
    assert!(ring.enable_kicks());
    assert_eq!(take_all(&mut ring), [3]);
}

#[test]
fn excessive_available_entries_are_refused() {
    let (driver, mut ring) = Driver::new(true);
    driver.put(AVAILABLE + 2, SIZE + 1);
    assert!(ring.take().is_err());
    driver.put(AVAILABLE + 2, SIZE);
    ring.go_on(0);
    assert!(ring.take().is_ok());
}

#[test]
fn ring_resumes_where_it_was_left() {
    let (mut driver, mut ring) = Driver::new(true);
    driver.put(USED + 2, 65_535);
    driver.available = 65_535;
    let map = driver.map.clone();
    let mut queue = Queue::new(SIZE).unwrap();
    queue.set_size(SIZE);
    queue
        .try_set_avail_ring_address(GuestAddress(AVAILABLE))
        .unwrap();
    queue.try_set_used_ring_address(GuestAddress(USED)).unwrap();
    queue.set_ready(true);
    drop(std::mem::replace(
        &mut ring,
        Ring::new(&queue, map).unwrap(),
    ));
    assert_eq!(ring.next_used(), 65_535);
    ring.go_on(65_535);
    driver.make_available(&[4, 6]);
    assert_eq!(take_all(&mut ring), [4, 6]);
    ring.put(4, 0);
    ring.publish();
    assert_eq!(driver.half(USED + 2), 0);
}

#[test]
fn ring_across_regions_is_refused() {
    let ranges = [(GuestAddress(0), 0x2010), (GuestAddress(0x2010), 0x1000)];
    let map = Arc::new(GuestMap::from(
        GuestMemoryMmap::from_ranges(&ranges).unwrap(),
    ));
    let mut queue = Queue::new(SIZE).unwrap();
    queue.set_size(SIZE);
    queue
        .try_set_avail_ring_address(GuestAddress(AVAILABLE))
        .unwrap();
    queue.try_set_used_ring_address(GuestAddress(USED)).unwrap();
    queue.set_ready(true);
    assert!(Ring::new(&queue, map).is_err());
}
