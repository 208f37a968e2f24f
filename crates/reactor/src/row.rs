//! How much a task does before others have their turn.

/// Counts what a task does in a row: messages of a peer that were read ahead, say, each of which waits for nothing.
#[derive(Debug)]
pub struct Row {
    most: u32,
    done: u32,
}

impl Row {
    /// Maximum in a row.
    pub fn new(most: u32) -> Self {
        Self { most, done: 0 }
    }

    /// Counts one more. When it is the last of a row others are to have their turn ([`crate::Handle::yield_now`]), and the
    /// next row begins.
    #[inline]
    pub fn ends(&mut self) -> bool {
        self.done += 1;
        let ends = self.done >= self.most;
        if ends {
            self.done = 0;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_as_many() {
        let mut row = Row::new(3);
        let ends: Vec<bool> = (0..7).map(|_| row.ends()).collect();
        assert_eq!(ends, [false, false, true, false, false, true, false]);
    }
}
