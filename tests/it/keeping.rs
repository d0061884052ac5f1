//! Keeping what was stored: looking for damage, backups, moving from one database to another.

mod archives;
mod backup;
mod copy;
mod durability;
mod fsck;
mod purge;
mod retention;
mod tekton;
mod tiers;
