//! A repair never makes it worse: pools damaged at random. `./dev bench damage` does 1,000.

#[test]
fn a_repair_loses_nothing_that_could_be_read_before() {
    let tally = crate::support::damage::run(50, 1);
    println!("{}", tally.table());
    assert_eq!(tally.lost_by_repair, 0, "{tally:#?}");
    assert_eq!(tally.closed_by_repair, 0, "{tally:#?}");
    assert!(tally.before[1] > 5 && tally.before[2] > 5, "{tally:#?}");
    assert!(tally.after[0] > tally.before[0], "{tally:#?}");
}
