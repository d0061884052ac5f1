//! Seeded random values of the sorts that errors of real programs have in them.

/// Words that users name pipelines, directories and namespaces by.
const WORDS: &[&str] = &[
    "api",
    "auth",
    "billing",
    "cart",
    "catalog",
    "checkout",
    "console",
    "crawler",
    "dashboard",
    "delivery",
    "edge",
    "events",
    "exporter",
    "frontend",
    "gateway",
    "invoice",
    "ledger",
    "mailer",
    "media",
    "orders",
    "payments",
    "platform",
    "pricing",
    "profile",
    "proxy",
    "reports",
    "search",
    "session",
    "shipping",
    "storage",
    "tracking",
    "users",
    "warehouse",
    "web",
    "worker",
];

/// The alphabet that Kubernetes makes suffixes of.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The generator SplitMix64, with what is drawn by it.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In [0, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.unit()
    }

    /// From the normal distribution with mean 0 and deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// At least `least`, and less than `end`.
    pub(crate) fn range(&mut self, least: u64, end: u64) -> u64 {
        least + self.next() % (end - least)
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[usize::try_from(self.range(0, of.len() as u64)).unwrap()]
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.range(0, last as u64 + 1)).unwrap();
            items.swap(last, other);
        }
    }

    fn text(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length)
            .map(|_| {
                char::from(alphabet[usize::try_from(self.range(0, alphabet.len() as u64)).unwrap()])
            })
            .collect()
    }

    pub(crate) fn word(&mut self) -> &'static str {
        self.pick(WORDS)
    }

    /// Five characters, as the API server adds to `generateName`.
    pub(crate) fn suffix(&mut self) -> String {
        self.text(SUFFIX, 5)
    }

    /// The name of a run.
    pub(crate) fn run(&mut self) -> String {
        let suffix = self.suffix();
        match self.range(0, 4) {
            0 => format!("{}-{}-{suffix}", self.word(), self.word()),
            1 => format!("{}-pr-{}-{suffix}", self.word(), self.range(1, 9000)),
            2 => format!(
                "{}-nightly-{}",
                self.word(),
                self.range(28_000_000, 29_000_000)
            ),
            _ => format!("{}-{suffix}", self.word()),
        }
    }

    pub(crate) fn pod(&mut self) -> String {
        let run = self.run();
        if self.chance(0.3) {
            format!("{run}-{}-pod", self.pick(&["build", "test", "deploy"]))
        } else {
            format!("{run}-pod")
        }
    }

    pub(crate) fn namespace(&mut self) -> String {
        match self.range(0, 3) {
            0 => format!(
                "{}-{}",
                self.word(),
                self.pick(&["dev", "ci", "staging", "prod"])
            ),
            1 => format!("team-{}", self.word()),
            _ => format!("{}{}", self.word(), self.range(1, 40)),
        }
    }

    pub(crate) fn node(&mut self) -> String {
        match self.range(0, 3) {
            0 => format!(
                "ip-10-{}-{}-{}.eu-west-1.compute.internal",
                self.range(0, 256),
                self.range(0, 256),
                self.range(0, 256)
            ),
            1 => format!(
                "gke-ci-pool-{}-{}-{}",
                self.range(1, 5),
                self.hex(8),
                self.text(SUFFIX, 4)
            ),
            _ => format!("worker-{}", self.range(1, 200)),
        }
    }

    pub(crate) fn hex(&mut self, length: usize) -> String {
        self.text(b"0123456789abcdef", length)
    }

    pub(crate) fn upper(&mut self, length: usize) -> String {
        self.text(b"0123456789ABCDEFGHJKLMNPQRSTUVWXYZ", length)
    }

    pub(crate) fn base64(&mut self, length: usize) -> String {
        self.text(
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            length,
        )
    }

    pub(crate) fn uuid(&mut self) -> String {
        format!(
            "{}-{}-4{}-a{}-{}",
            self.hex(8),
            self.hex(4),
            self.hex(3),
            self.hex(3),
            self.hex(12)
        )
    }

    pub(crate) fn ip(&mut self) -> String {
        match self.range(0, 4) {
            0 => format!("172.16.{}.{}", self.range(0, 256), self.range(1, 255)),
            _ => format!(
                "10.{}.{}.{}",
                self.range(0, 256),
                self.range(0, 256),
                self.range(1, 255)
            ),
        }
    }

    /// Address and port, of either family.
    pub(crate) fn socket(&mut self) -> String {
        let port = self.range(1024, 65_536);
        if self.chance(0.2) {
            format!(
                "[fd00:{}:{}::{}]:{port}",
                self.hex(3),
                self.hex(2),
                self.hex(2)
            )
        } else {
            format!("{}:{port}", self.ip())
        }
    }

    fn date(&mut self) -> (u64, u64, u64) {
        (self.range(2023, 2027), self.range(1, 13), self.range(1, 29))
    }

    fn clock(&mut self) -> String {
        format!(
            "{:02}:{:02}:{:02}",
            self.range(0, 24),
            self.range(0, 60),
            self.range(0, 60)
        )
    }

    /// As RFC 3339 has it, with several precisions.
    pub(crate) fn time(&mut self) -> String {
        let (year, month, day) = self.date();
        let clock = self.clock();
        let rest = match self.range(0, 3) {
            0 => "Z".to_owned(),
            1 => format!(".{:09}Z", self.range(0, 1_000_000_000)),
            _ => "+02:00".to_owned(),
        };
        format!("{year}-{month:02}-{day:02}T{clock}{rest}")
    }

    /// As log4j and Python's logging print it.
    pub(crate) fn log_time(&mut self) -> String {
        let (year, month, day) = self.date();
        format!(
            "{year}-{month:02}-{day:02} {},{:03}",
            self.clock(),
            self.range(0, 1000)
        )
    }

    /// As Go's log package prints it.
    pub(crate) fn go_time(&mut self) -> String {
        let (year, month, day) = self.date();
        format!("{year}/{month:02}/{day:02} {}", self.clock())
    }

    /// As HTTP's `Date` header has it.
    pub(crate) fn http_time(&mut self) -> String {
        let (year, _, day) = self.date();
        let weekday = self.pick(&["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]);
        let month = self.pick(&["Jan", "Mar", "May", "Jul", "Sep", "Nov", "Dec"]);
        format!("{weekday}, {day:02} {month} {year} {} GMT", self.clock())
    }

    /// As klog begins a line.
    pub(crate) fn klog(&mut self) -> String {
        format!(
            "{:02}{:02} {}.{:06} {:7}",
            self.range(1, 13),
            self.range(1, 29),
            self.clock(),
            self.range(0, 1_000_000),
            self.range(1, 40)
        )
    }

    /// As Go prints a long duration.
    pub(crate) fn go_duration(&mut self) -> String {
        match self.range(0, 4) {
            0 => format!("{}h0m0s", self.range(1, 7)),
            1 => format!("{}m0s", self.range(2, 59)),
            2 => format!("{}h{}m0s", self.range(1, 4), self.range(1, 60)),
            _ => format!("{}s", self.range(10, 60)),
        }
    }

    pub(crate) fn seconds(&mut self) -> String {
        match self.range(0, 3) {
            0 => format!("{}ms", self.range(2, 999)),
            1 => format!("{}.{:02}s", self.range(0, 90), self.range(0, 100)),
            _ => format!("{:.3}s", self.between(0.01, 20.0)),
        }
    }

    pub(crate) fn quantity(&mut self) -> String {
        match self.range(0, 3) {
            0 => format!("{}Mi", self.range(64, 9000)),
            1 => format!("{}Gi", self.range(1, 64)),
            _ => format!("{}Ki", self.range(1000, 99_000_000)),
        }
    }

    pub(crate) fn cpu(&mut self) -> String {
        if self.chance(0.5) {
            format!("{}m", self.range(1, 80) * 50)
        } else {
            self.range(1, 64).to_string()
        }
    }

    pub(crate) fn version(&mut self) -> String {
        format!(
            "{}.{}.{}",
            self.range(0, 9),
            self.range(0, 30),
            self.range(0, 20)
        )
    }

    pub(crate) fn address(&mut self) -> String {
        let length = if self.chance(0.7) { 10 } else { 12 };
        format!("0x{}", self.hex(length))
    }

    /// A directory that a build works in.
    pub(crate) fn directory(&mut self) -> String {
        match self.range(0, 5) {
            0 => format!("/workspace/source/{}", self.word()),
            1 => format!(
                "/tmp/{}-{}/{}",
                self.word(),
                self.range(1000, 9_999_999),
                self.word()
            ),
            2 => format!("/home/runner/work/{}", self.word()),
            3 => format!("/builds/{}/{}/{}", self.word(), self.hex(8), self.word()),
            _ => format!("/var/lib/ci/{}", self.uuid()),
        }
    }

    pub(crate) fn image(&mut self) -> String {
        format!("sha256:{}", self.hex(64))
    }
}
