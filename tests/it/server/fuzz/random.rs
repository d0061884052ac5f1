//! Numbers that look random, the same for the same seed, and bytes that are spoilt by them.

#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers of the request `index` of the run with this seed.
    pub fn of(seed: u64, index: u64) -> Self {
        let mut random = Self(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    /// Whether something happens that happens in so many of a hundred cases.
    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    pub fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length).map(|_| self.byte()).collect()
    }
}

const TOKENS: &[&[u8]] = &[
    b"\0",
    b"\r\n",
    b"\r\n\r\n",
    b"%",
    b"%00",
    b"%2f",
    b"%ff",
    b"..",
    b"/",
    b"//",
    b"-",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    "\u{202e}".as_bytes(),
    "\u{feff}".as_bytes(),
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"{}",
    b"[[[[[[[[",
    b"((((((((",
    b"null",
    b"1e999",
    b"-1",
    b"-0",
    b"0",
    b"18446744073709551616",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"2147483648",
    b"NaN",
    b"0000-00-00T00:00:00Z",
    b"9999-12-31T23:59:60.999999999Z",
    b"===",
    b"AAAA",
    b"'",
    b"'; --",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x0b",
    b"\x0c",
    b"application/grpc",
    b"chunked",
];

/// Changes `bytes` in one to four places.
pub fn spoil(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let to = (at + 1 + random.below(16)).min(bytes.len());
        match random.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.byte(),
            2 => bytes.truncate(at),
            3 if at < to => drop(bytes.drain(at..to)),
            4 if at < to => {
                let again = bytes[at..to].to_vec();
                let most = if random.percent(5) { 2000 } else { 3 };
                let times = 1 + random.below(most);
                for _ in 0..times {
                    bytes.splice(at..at, again.iter().copied());
                }
            }
            5 => drop(bytes.splice(at..at, random.bytes(12))),
            6 if at < to => {
                let other = random.below(bytes.len());
                bytes.swap(at, other);
            }
            _ => drop(bytes.splice(at..at, random.pick(TOKENS).iter().copied())),
        }
    }
}

/// The same of a text, which stays one.
pub fn spoil_text(text: &mut String, random: &mut Random) {
    let mut bytes = std::mem::take(text).into_bytes();
    spoil(&mut bytes, random);
    *text = String::from_utf8_lossy(&bytes).into_owned();
}
