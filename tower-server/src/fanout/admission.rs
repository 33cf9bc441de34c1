//! How much may be on its way to Beacons that start over. Live changes are never held up for them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Bytes of starts that are on their way, of all streams.
#[derive(Debug)]
pub struct Admission {
    limit: u64,
    under_way: AtomicU64,
}

/// A start that was let in; dropping it makes room.
#[derive(Debug)]
pub struct Admitted {
    admission: Arc<Admission>,
    bytes: u64,
}

impl Admission {
    /// Lets in starts of so many bytes at a time, and always one.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, under_way: AtomicU64::new(0) })
    }

    /// Lets a start in, if there is room.
    pub fn admit(self: &Arc<Self>, bytes: u64) -> Option<Admitted> {
        let room =
            |under_way| (under_way == 0 || under_way + bytes <= self.limit).then_some(under_way + bytes);
        self.under_way.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).ok()?;
        Some(Admitted { admission: self.clone(), bytes })
    }

    /// Bytes under way.
    pub fn under_way(&self) -> u64 {
        self.under_way.load(Ordering::Relaxed)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.admission.under_way.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_waits_until_there_is_room_but_one_is_always_let_in() {
        let admission = Admission::new(100);
        let large = admission.admit(1000).unwrap();
        assert!(admission.admit(1).is_none());
        drop(large);
        let first = admission.admit(60).unwrap();
        let second = admission.admit(40).unwrap();
        assert!(admission.admit(1).is_none());
        drop((first, second));
        assert_eq!(admission.under_way(), 0);
    }
}
