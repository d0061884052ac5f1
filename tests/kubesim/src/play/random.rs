//! Chance that repeats itself: one seed, one sequence. Not for secrets.

use uuid::Builder;

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for the `number`th thing, whatever was drawn before.
    pub(crate) fn fork(&self, number: u64) -> Self {
        let mut mixed = Self(self.0 ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self(mixed.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or zero when that is zero.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound.max(1)))
            .expect("a remainder is below its bound")
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let position = self.below(u32::try_from(of.len()).unwrap_or(u32::MAX));
        of.get(usize::try_from(position).ok()?)
    }

    pub(crate) fn uid(&mut self) -> String {
        let bits = u128::from(self.next()) << 64 | u128::from(self.next());
        Builder::from_random_bytes(bits.to_be_bytes())
            .into_uuid()
            .to_string()
    }
}
