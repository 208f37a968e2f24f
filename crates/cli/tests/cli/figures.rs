//! Maps and load lines.

use api::v1::{Counters, MapCell};
use cli::{Load, Paint, legend, load_line, strip};

fn cell(ram: u64, fast: u64, slow: u64, empty: u64) -> MapCell {
    MapCell {
        ram,
        fast,
        slow,
        empty,
        uses: 0,
    }
}

#[test]
fn cell_shows_its_main_tier_and_a_visible_faster_share() {
    for (cell, letter) in [
        (cell(9, 1, 0, 0), 'R'),
        (cell(0, 9, 1, 0), 'F'),
        (cell(0, 0, 9, 1), 'S'),
        (cell(0, 0, 0, 9), '.'),
        (cell(0, 0, 0, 0), '.'),
        (cell(1, 1, 8, 0), 'r'),
        (cell(0, 1, 9, 0), 'f'),
        (cell(1, 0, 99, 0), 'S'),
        (cell(0, 0, 4, 6), 's'),
    ] {
        assert_eq!(
            strip(0, &[cell], Paint::Letters),
            format!("      0 B {letter}\n")
        );
    }
}

#[test]
fn strip_has_64_cells_per_line_with_their_address() {
    let text = strip(8 << 30, &[cell(0, 0, 1, 0); 100], Paint::Letters);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("      0 B {}", "S".repeat(64)));
    assert_eq!(lines[1], format!("  5.1 GiB {}", "S".repeat(36)));
    assert_eq!(lines.len(), 2);
}

#[test]
fn map_colours_are_red_orange_blue_and_grey() {
    let text = strip(
        0,
        &[
            cell(1, 0, 0, 0),
            cell(0, 1, 0, 0),
            cell(0, 0, 1, 0),
            cell(0, 0, 0, 1),
        ],
        Paint::Colour,
    );
    let order: Vec<usize> = ["38;5;196", "38;5;208", "38;5;27", "38;5;240"]
        .iter()
        .map(|code| text.find(code).expect(code))
        .collect();
    assert!(order.is_sorted(), "{text:?}");
}

#[test]
fn legend_shows_the_amount_per_tier() {
    let text = legend(
        &[cell(1024, 0, 4096, 0), cell(1024, 0, 0, 0)],
        Paint::Letters,
    );
    assert_eq!(
        text.trim(),
        "R RAM 2 KiB   F fast 0 B   S slow 4 KiB   . empty 0 B"
    );
}

#[test]
fn load_is_the_difference_of_two_samples() {
    let before = Counters {
        reads: 100,
        read_bytes: 4096,
        read_ns: 5,
        blocks_ram: 10,
        ..Counters::default()
    };
    let after = Counters {
        reads: 300,
        read_bytes: 4096 + 2_000_000,
        read_ns: 5 + 200 * 3_000_000,
        writes: 50,
        write_bytes: 1_000_000,
        write_ns: 50 * 1_500_000,
        blocks_ram: 11,
        blocks_fast: 2,
        blocks_slow: 1,
        ..Counters::default()
    };
    let load = Load::between(&before, &after, 2.0);
    let expected = Load {
        read_iops: 100.0,
        write_iops: 25.0,
        read_bytes: 1e6,
        write_bytes: 5e5,
        read_ms: 3.0,
        write_ms: 1.5,
        shares: [25.0, 50.0, 25.0],
    };
    assert_eq!(load, expected);
    let words: Vec<String> = load_line("tank", &load)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert_eq!(
        words,
        [
            "tank", "100", "25", "1.0", "0.5", "3.000", "1.500", "25.0", "50.0", "25.0"
        ]
    );
}

#[test]
fn idle_and_reopened_pools_give_valid_loads() {
    let some = Counters {
        reads: 10,
        ..Counters::default()
    };
    assert_eq!(Load::between(&some, &some, 1.0), Load::default());
    let less = Counters {
        reads: 4,
        ..Counters::default()
    };
    assert_eq!(Load::between(&some, &less, 1.0).read_iops, 4.0);
    assert_eq!(Load::between(&some, &less, 0.0).read_iops, 0.0);
}
