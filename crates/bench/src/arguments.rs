//! Command line arguments.

use crate::failure::Result;

/// More shards than a machine of today has cores.
const SHARDS_MAX: u16 = 128;
const USAGE: &str = "usage: convect-bench cases [NAME...] | convect-bench shards [COUNT...]";

/// What is to be run.
#[derive(PartialEq, Eq, Debug)]
pub enum Command {
    /// The cases of these names; all where none is given.
    Cases(Vec<String>),
    /// Pools of so many shards, in turn.
    Shards(Vec<u16>),
}

impl Command {
    /// # Errors
    /// When the words mean nothing.
    pub fn parse(words: &[String]) -> Result<Self> {
        match words.split_first() {
            Some((first, names)) if first == "cases" => Ok(Self::Cases(names.to_vec())),
            Some((first, counts)) if first == "shards" => {
                let counts: Option<Vec<u16>> = counts.iter().map(|text| shards(text)).collect();
                let counts = counts.ok_or_else(|| {
                    format!("give numbers of shards from 1 to {SHARDS_MAX}; {USAGE}")
                })?;
                Ok(Self::Shards(if counts.is_empty() {
                    vec![1, 2]
                } else {
                    counts
                }))
            }
            _ => Err(USAGE.to_owned()),
        }
    }
}

fn shards(text: &str) -> Option<u16> {
    text.parse()
        .ok()
        .filter(|count| (1..=SHARDS_MAX).contains(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Command> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Command::parse(&words)
    }

    #[test]
    fn words_say_what_is_run_and_wrong_ones_are_told() {
        assert_eq!(parse("cases"), Ok(Command::Cases(vec![])));
        assert_eq!(parse("cases a"), Ok(Command::Cases(vec!["a".to_owned()])));
        assert_eq!(parse("shards"), Ok(Command::Shards(vec![1, 2])));
        assert_eq!(parse("shards 4 16"), Ok(Command::Shards(vec![4, 16])));
        for wrong in ["", "case", "shards 0", "shards many", "shards 129"] {
            let refused = parse(wrong).expect_err(wrong);
            assert!(refused.contains("usage: "), "{refused}");
        }
    }
}
