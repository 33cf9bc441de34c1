//! One suite over both logs, embedded and in a real ZooKeeper: what holds for one holds for the other.

mod places;
mod suite;
