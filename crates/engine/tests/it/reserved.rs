//! What hosts have reserved of volumes goes where the pool goes.

use crate::support::{Folder, engine, start_again, tiered, volume};
use engine::ErrorCode;

#[test]
fn what_is_reserved_of_each_volume_outlives_the_engine() {
    let folder = Folder::new();
    let mut engine = engine(1);
    let pool = tiered(&folder, "tank", 1, 128, 192);
    engine.pool_create(&pool).unwrap();
    engine.volume_create("tank", &volume("v", 8)).unwrap();
    engine.volume_create("tank", &volume("w", 8)).unwrap();
    let kept = |engine: &engine::Engine, name: &str| engine.volume_reservations("tank", name);
    assert_eq!(kept(&engine, "v"), Ok(None));
    let state = |text: &str| Some(text.to_owned());
    for (name, text) in [("v", "first"), ("w", "other"), ("v", "second")] {
        let set = engine.volume_set_reservations("tank", name, state(text));
        assert_eq!(set, Ok(()));
    }
    start_again(&mut engine, &pool, true);
    assert_eq!(kept(&engine, "v"), Ok(state("second")));
    let long = Some("x".repeat((128 << 10) + 1));
    let refused = engine.volume_set_reservations("tank", "v", long);
    assert_eq!(refused.unwrap_err().code, ErrorCode::Invalid);
    assert_eq!(kept(&engine, "v"), Ok(state("second")));
    engine.volume_set_reservations("tank", "w", None).unwrap();
    start_again(&mut engine, &pool, true);
    assert_eq!(
        (kept(&engine, "v"), kept(&engine, "w")),
        (Ok(state("second")), Ok(None))
    );
}
