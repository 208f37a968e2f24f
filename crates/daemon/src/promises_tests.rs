use super::*;

fn qos(windows: u64, met: u64, level: u8) -> VolumeQos {
    VolumeQos {
        policy: engine::QosPolicy {
            id: 1,
            name: "gold".to_owned(),
            level,
            min_iops: 100,
            min_bandwidth: 0,
            max_iops: 0,
            max_bandwidth: 0,
            burst_s: 0,
            max_latency_ns: 0,
            weight: 100,
            reaction: engine::Reaction::Normal,
            fast_floor: 0,
            ram_percent: 0,
        },
        group: None,
        iops: 0,
        bandwidth: 0,
        operations: 0,
        late: 0,
        held: 0,
        held_ns: 0,
        own_ns: 0,
        waited_ns: 0,
        took_ns: 0,
        held_for: Vec::new(),
        cost_ns: 0,
        windows,
        met,
    }
}

fn look(promise: &mut Promise, qos: &VolumeQos, up_s: u64) -> Option<String> {
    promise.look(qos, Beneath::default(), Written::Fast, up_s);
    promise.unmet().map(str::to_owned)
}

#[test]
fn whole_minute_is_evaluated() {
    let mut promise = Promise::default();
    for up_s in 0..60 {
        assert_eq!(look(&mut promise, &qos(up_s * 10, up_s * 9, 1), up_s), None);
    }
    let unmet = look(&mut promise, &qos(600, 540, 1), 60).unwrap();
    assert!(unmet.contains("90.0 %"), "{unmet}");
    for up_s in 61..=130 {
        let met = 540 + (up_s - 60) * 10;
        let unmet = look(&mut promise, &qos(up_s * 10, met, 1), up_s).is_some();
        assert!(!unmet || up_s < 120, "after {up_s} s");
    }
}

#[test]
fn few_windows_or_a_changed_policy_give_no_result() {
    let mut promise = Promise::default();
    for up_s in 0..=70 {
        assert_eq!(look(&mut promise, &qos(up_s / 10, 0, 1), up_s), None);
    }
    for up_s in 71..140 {
        look(&mut promise, &qos(up_s * 10, 0, 1), up_s);
    }
    assert!(look(&mut promise, &qos(1400, 0, 1), 140).is_some());
    assert_eq!(look(&mut promise, &qos(1410, 0, 2), 141), None);
    assert_eq!(look(&mut promise, &qos(3, 3, 2), 142), None, "reopened");
}

#[test]
fn bottleneck_is_the_largest_share_of_time() {
    // Queued, throttled, fast tier, slow tier and writes, per ten seconds.
    let cases = [
        ([0; 5], Written::Fast, None),
        (
            [50, 10, 5, 5, 5],
            Written::Fast,
            Some(QosBottleneck::ShardTime),
        ),
        (
            [50, 40, 5, 5, 5],
            Written::Fast,
            Some(QosBottleneck::OwnMaximum),
        ),
        (
            [50, 0, 30, 5, 30],
            Written::Fast,
            Some(QosBottleneck::FastTier),
        ),
        (
            [50, 0, 30, 55, 30],
            Written::Full,
            Some(QosBottleneck::SlowTier),
        ),
        (
            [50, 0, 30, 55, 60],
            Written::Full,
            Some(QosBottleneck::Room),
        ),
        (
            [50, 0, 0, 5, 60],
            Written::Slow,
            Some(QosBottleneck::SlowTier),
        ),
    ];
    for ([waited, own, fast, slow, write], written, wanted) in cases {
        let mut promise = Promise::default();
        for mark in 0..3 {
            let of = VolumeQos {
                waited_ns: waited * mark,
                held_ns: waited * mark,
                own_ns: own * mark,
                ..qos(0, 0, 1)
            };
            let beneath = Beneath {
                fast_ns: fast * mark,
                slow_ns: slow * mark,
                written_ns: write * mark,
            };
            assert_eq!(promise.bottleneck().filter(|_| mark < 2), None);
            promise.look(&of, beneath, written, mark * 10);
        }
        assert_eq!(
            promise.bottleneck(),
            wanted,
            "{waited} {own} {fast} {slow} {write}"
        );
    }
}
