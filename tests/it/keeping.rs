//! Keeping what was stored: looking for damage, backups, moving from one database to another.

mod durability;
mod fsck;
