//! COMPARE AND WRITE (SBC-3 5.2) and ORWRITE (5.16): one step for every other writer.

use crate::blocks::{Blocks, Flags};
use crate::execute::{Answer, Call};
use crate::sense::Sense;
use crate::transfer::mismatch;

impl Call<'_> {
    pub(crate) async fn compare_and_write(self) -> Answer {
        let flags = Flags::parse(self.cdb)?;
        let range = self.nexus.transfer(Blocks::parse_compare(self.cdb))?;
        let half = range.end - range.start;
        if self.data.len() as u64 != 2 * half {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        if half == 0 {
            return Ok(self.empty());
        }
        let (expected, new) = self.data(2 * half)?.split_at(half as usize);
        let _held = self.hold(range.clone(), true).await;
        let found = self.fetch(range.clone()).await?;
        if let Some(at) = mismatch(found.as_bytes().unwrap_or(&[]), expected) {
            return Err(Sense::MISCOMPARE.at(at).into());
        }
        self.put(range.start, new.into(), flags.fua).await?;
        Ok(self.took(2 * half))
    }

    pub(crate) async fn or_write(self) -> Answer {
        let flags = Flags::parse(self.cdb)?;
        let range = self.nexus.transfer(Blocks::parse(self.cdb))?;
        let len = range.end - range.start;
        if len == 0 {
            return Ok(self.empty());
        }
        let given = self.data(len)?;
        let _held = self.hold(range.clone(), true).await;
        let found = self.fetch(range.clone()).await?;
        let mut merged = found.into_bytes().unwrap_or_default();
        for (byte, given) in merged.iter_mut().zip(given) {
            *byte |= given;
        }
        self.put(range.start, merged, flags.fua).await?;
        Ok(self.took(len))
    }
}
