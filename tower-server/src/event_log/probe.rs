//! Where a log writes, told to whoever wants to know: a test that ends the process there.

use std::{fmt, sync::Arc};

/// Is told the name of each write, right before it and right after the last one of an operation.
#[derive(Clone, Default)]
pub struct Probe(Option<Arc<dyn Fn(&'static str) + Send + Sync>>);

impl Probe {
    /// One that tells this function.
    pub fn new(tell: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(super) fn at(&self, write: &'static str) {
        if let Some(tell) = &self.0 {
            tell(write);
        }
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Probe").field(&self.0.is_some()).finish()
    }
}
