//! One suite over both logs, embedded and in a real ZooKeeper: what holds for one holds for the other.

mod archives;
mod child;
mod crashes;
mod faults;
mod places;
mod suite;
