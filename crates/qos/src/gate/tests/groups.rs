//! Volumes that share a policy.

use super::*;

/// The number of the group, and its volumes, each with as many operations in flight.
fn group(mut world: World, group: u32, policy: QosPolicyConfig, volumes: &[u32]) -> World {
    let tenant = Arc::new(Tenant::of_group(group, Arc::new(policy), 1));
    for volume in volumes {
        world.tenants.insert(*volume, tenant.clone());
        world = world.host(*volume, 32, None);
    }
    world.gate.set_tenants(Arc::new(world.tenants.clone()));
    world
}

fn ended(world: &World, volumes: &[u32]) -> u64 {
    let hosts = world.hosts.iter();
    let of = hosts.filter(|host| volumes.contains(&host.volume));
    of.map(|host| host.ended).sum()
}

#[test]
fn group_of_many_volumes_gets_as_much_as_one_volume() {
    let world = World::new(flat).host(1, 32, Some(policy(2, 10_000)));
    let mut world = group(world, 10, policy(2, 10_000), &[2, 3, 4]);
    world.run(3000 * MS);
    let (alone, together) = (ended(&world, &[1]), ended(&world, &[2, 3, 4]));
    assert!(
        alone.abs_diff(together) * 20 < alone,
        "{alone} {together}: by volumes it would be three times as much"
    );
    let each = [2, 3, 4].map(|volume| ended(&world, &[volume]));
    assert!(
        each.iter().all(|of| of.abs_diff(together / 3) * 5 < *of),
        "{each:?}"
    );
}

#[test]
fn maximum_of_a_group_holds_for_the_sum_of_its_volumes() {
    let capped = QosPolicyConfig {
        max_iops: 2000,
        ..policy(3, 0)
    };
    let mut world = group(World::new(flat), 10, capped, &[2, 3, 4]);
    world.run(2000 * MS);
    let got = ended(&world, &[2, 3, 4]);
    assert!((3900..=4200).contains(&got), "{got}");
    let totals = world.tenants[&2].service().totals();
    assert!(totals.held > 0 && totals.operations >= 3900, "{totals:?}");
}

#[test]
fn held_operations_follow_their_volume_into_a_group_and_out_of_it() {
    let capped = QosPolicyConfig {
        max_iops: 1,
        ..policy(3, 0)
    };
    let mut gate: Gate<(u32, u64)> = Gate::new(0);
    let shared = Arc::new(Tenant::of_group(10, Arc::new(capped), 1));
    let of = |volumes: &[u32]| -> BTreeMap<u32, Arc<Tenant>> {
        volumes.iter().map(|of| (*of, shared.clone())).collect()
    };
    let mut now = MS;
    let mut hold = |gate: &mut Gate<(u32, u64)>, round: u64| {
        for volume in [1, 2, 3] {
            now += 1;
            let request = Request {
                volume,
                kind: Kind::Write,
                bytes: 4096,
            };
            gate.hold(request, (volume, round), now);
        }
    };
    gate.set_tenants(Arc::new(of(&[1, 2])));
    shared.take(4096, MS);
    hold(&mut gate, 0);
    gate.set_tenants(Arc::new(of(&[2, 3])));
    hold(&mut gate, 1);
    gate.set_tenants(Arc::new(of(&[1])));
    hold(&mut gate, 2);
    gate.set_tenants(Arc::default());
    hold(&mut gate, 3);
    assert_eq!(gate.held(), 12);
    let mut released: Vec<(u32, u64)> = Vec::new();
    for tick in 1..10 {
        let now = MS + tick * TICK_NS;
        gate.begin_turn(0);
        gate.release(now, |what| released.push(what));
        gate.tick(now, now);
    }
    assert_eq!(gate.held(), 0);
    assert!(!gate.can_release(0));
    for volume in [1, 2, 3] {
        let mut rounds = released.iter().filter(|of| of.0 == volume);
        assert!((0..4).all(|round| rounds.next() == Some(&(volume, round))));
        assert_eq!(rounds.next(), None);
    }
}
