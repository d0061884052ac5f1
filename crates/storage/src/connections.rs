//! How many connections to a database there are.

/// Connections to a database that callers share; on SQLite those that read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// In use.
    pub busy: u32,
    /// Open, and waiting for work.
    pub idle: u32,
    /// How many may be open at once.
    pub most: u32,
}

impl std::ops::Add for Connections {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            busy: self.busy + other.busy,
            idle: self.idle + other.idle,
            most: self.most + other.most,
        }
    }
}

impl Connections {
    pub(super) fn of<D: sqlx::Database>(pool: &sqlx::Pool<D>) -> Self {
        let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
        Self {
            busy: pool.size().saturating_sub(idle),
            idle,
            most: pool.options().get_max_connections(),
        }
    }
}
