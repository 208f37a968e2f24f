//! What to do about causes.

use super::evidence::{Evidence, PolicySeen, Work};
use api::v1::WhyAction;

/// Share of its maximum fast-tier space from which a volume counts as having reached it.
const CEILING_REACHED: f64 = 0.9;
/// Gain in hit ratio with twice the fast tier from which enlarging it is recommended.
const WORTH_DOUBLING: f64 = 0.03;
/// Share of the fast tier that is free while it is still filling.
const STILL_FREE: f64 = 0.15;

/// An action with a command.
pub fn run(text: impl Into<String>, command: String) -> WhyAction {
    WhyAction {
        text: text.into(),
        command: Some(command),
    }
}

/// An action without one.
pub fn act(text: impl Into<String>) -> WhyAction {
    WhyAction {
        text: text.into(),
        command: None,
    }
}

/// What to do about the maximum of a policy.
pub fn limit(evidence: &Evidence) -> Vec<WhyAction> {
    let Evidence { pool, volume, .. } = evidence;
    let Some(policy) = &evidence.policy else {
        return vec![run(
            "see the maximums of the pool's policies, and raise one",
            format!("convect qos policy list {pool}"),
        )];
    };
    let PolicySeen { name, group, .. } = policy;
    if policy.is_built_in {
        return vec![run(
            "give the volume another policy, or none",
            format!("convect volume set {pool}/{volume} --policy none"),
        )];
    }
    let mut options = String::new();
    if policy.max_iops > 0 {
        options += &format!(" --max-iops {}", policy.max_iops * 2);
    }
    if policy.max_bandwidth > 0 {
        options += &format!(" --max-bandwidth {}", policy.max_bandwidth * 2);
    }
    let whose = match group {
        Some(group) => format!("; the volumes of group {group} share it"),
        None => String::new(),
    };
    vec![run(
        format!("raise the maximum, for example to twice{whose}"),
        format!("convect qos policy set {pool}/{name}{options}"),
    )]
}

/// What to do about volumes that are served first.
pub fn shares(evidence: &Evidence) -> Vec<WhyAction> {
    let pool = &evidence.pool;
    vec![
        run(
            "check what the pool guarantees to whom, then raise this volume's minimum or lower \
             the maximum of the others",
            format!("convect qos check {pool}"),
        ),
        run(
            "see what each attains",
            format!("convect qos status {pool}"),
        ),
    ]
}

/// Why data is not on the fast tier: evidence, and what to do.
pub fn misses(evidence: &Evidence) -> (Vec<String>, Vec<WhyAction>) {
    let (pool, name) = (&evidence.pool, evidence.name());
    let Some(fast) = &evidence.fast else {
        let action = run(
            "add flash as a fast tier",
            format!("convect pool add {pool} fast mirror DRIVE DRIVE"),
        );
        return (vec!["the pool has no fast tier".to_owned()], vec![action]);
    };
    let what_if = || {
        run(
            "see what a larger fast tier would bring",
            format!("convect pool what-if {pool}"),
        )
    };
    let pin = || {
        run(
            "pin the volume to the fast tier, if it is to be fast always",
            format!("convect volume set {name} --pin fast"),
        )
    };
    let Some(seen) = &evidence.placement else {
        return (Vec::new(), vec![what_if(), pin()]);
    };
    if seen.is_held {
        let action = run(
            "resume promotion",
            format!("convect pool hold-promotion {pool} off"),
        );
        let said = "promotion is paused in the whole pool".to_owned();
        return (vec![said], vec![action]);
    }
    if seen.is_off {
        let action = run(
            "enable promotion",
            format!("convect volume set {name} --promotion on"),
        );
        let said = "promotion is disabled for this volume".to_owned();
        return (vec![said], vec![action]);
    }
    let ceiling = seen.ceiling as f64;
    if seen.ceiling > 0 && seen.fast as f64 >= ceiling * CEILING_REACHED {
        let action = run(
            "raise or remove its fast-tier quota",
            format!("convect volume set {name} --fast-ceiling none"),
        );
        let said = format!(
            "it uses {} of its fast-tier quota of {}",
            units::format_bytes(seen.fast),
            units::format_bytes(seen.ceiling)
        );
        return (vec![said], vec![action]);
    }
    let mut lines = Vec::new();
    let mut actions = Vec::new();
    if let Some(set) = seen.working_set
        && fast.capacity > 0.0
    {
        let larger = match set as f64 > fast.capacity {
            true => "larger than",
            false => "within",
        };
        lines.push(format!(
            "the pool's working set is about {}, {larger} its fast tier of {}",
            units::format_bytes(set),
            units::format_bytes(fast.capacity as u64)
        ));
    }
    let mut has_gain = false;
    if let Some((now, double)) = seen.hits {
        lines.push(format!(
            "forecast for twice the fast tier: {:.0} % hits instead of {:.0} %",
            double * 100.0,
            now * 100.0
        ));
        has_gain = double - now >= WORTH_DOUBLING;
    }
    let is_filling = fast
        .used
        .is_some_and(|used| used < fast.capacity * (1.0 - STILL_FREE));
    if is_filling {
        let promoted = evidence.load.map_or(0.0, |load| load.promoted);
        lines.push(format!(
            "the fast tier still has free space; {}/s of this volume are being promoted",
            units::format_bytes(promoted as u64)
        ));
        actions.push(run(
            "wait for the promotion of hot data, and watch it",
            format!("convect pool moves {pool} --watch"),
        ));
    }
    if has_gain {
        actions.push(run(
            "enlarge the fast tier",
            format!("convect pool add {pool} fast mirror DRIVE DRIVE"),
        ));
    }
    actions.push(pin());
    if !has_gain && !is_filling {
        actions.push(what_if());
    }
    (lines, actions)
}

/// What to do about the queue of the slow tier.
pub fn queue(evidence: &Evidence) -> Vec<WhyAction> {
    let pool = &evidence.pool;
    vec![
        run("see which volumes load it", "convect top".to_owned()),
        run(
            "limit those that matter less",
            format!("convect qos policy create {pool}/limited --max-iops N"),
        ),
        run(
            "add drives to the slow tier",
            format!("convect pool add {pool} slow mirror DRIVE DRIVE"),
        ),
    ]
}

/// What to do about a fast tier full of dirty data.
pub fn dirty(evidence: &Evidence) -> Vec<WhyAction> {
    let pool = &evidence.pool;
    vec![
        run(
            "limit volumes with many writes",
            format!("convect qos policy create {pool}/limited --max-bandwidth SIZE"),
        ),
        run(
            "enlarge the fast tier, or add drives to the slow one",
            format!("convect pool add {pool} fast mirror DRIVE DRIVE"),
        ),
    ]
}

/// What to do about background work.
pub fn work(evidence: &Evidence, work: &Work) -> Vec<WhyAction> {
    let pool = &evidence.pool;
    if !work.is_running {
        return match work.kind.as_str() {
            "scrub" => vec![act("have scrubs run at a time of less load")],
            _ => Vec::new(),
        };
    }
    let slower = (work.kind == "scrub").then(|| {
        run(
            "run it slower, from now on",
            format!("convect pool scrub {pool} --rate 50M"),
        )
    });
    let pause = run(
        "pause it until there is less load",
        format!("convect job pause {}", work.job),
    );
    std::iter::once(pause).chain(slower).collect()
}
