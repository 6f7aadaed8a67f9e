//! State that the sessions of one load thread to one endpoint share without a lock, such as a signer or a rendered head.
//! The thread's first session creates it; it is dropped with the last.

use std::any::Any;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Driver number, endpoint index, and the shared state.
type Entry = (u64, usize, Weak<dyn Any>);

thread_local! {
    static SHARED: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// The thread's state for `endpoint` of the driver with number `driver`; calls `make` if there is none yet.
pub(crate) fn shared<T: 'static>(driver: u64, endpoint: usize, make: impl FnOnce() -> T) -> Rc<T> {
    SHARED.with_borrow_mut(|all| {
        all.retain(|(_, _, shared)| shared.strong_count() > 0);
        let known = all
            .iter()
            .find(|(d, e, _)| (*d, *e) == (driver, endpoint))
            .and_then(|(_, _, shared)| shared.upgrade()?.downcast::<T>().ok());
        known.unwrap_or_else(|| {
            let made = Rc::new(make());
            let erased: Rc<dyn Any> = made.clone();
            all.push((driver, endpoint, Rc::downgrade(&erased)));
            made
        })
    })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::shared;

    #[test]
    fn a_value_lives_as_long_as_it_is_used() {
        let first = shared(1, 0, || 5);
        assert!(Rc::ptr_eq(&first, &shared(1, 0, || 6)));
        assert_eq!((*shared(1, 1, || 7), *shared(2, 0, || 8)), (7, 8));
        drop(first);
        assert_eq!(*shared(1, 0, || 9), 9);
    }
}
