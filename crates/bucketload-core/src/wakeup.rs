//! What a load thread looks at as soon as it wakes up, before its event loop asks the kernel once more.
//!
//! A driver whose answers do not come through descriptors alone [registers](register) what knows of them; the
//! thread's runtime calls [`woken`] after each sleep.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Knows of answers that have come while the thread slept.
pub trait Look {
    /// Wakes tasks that wait for what has come. Called on the thread that registered it.
    fn look(&self);
}

thread_local! {
    static LOOKS: RefCell<Vec<Weak<dyn Look>>> = const { RefCell::new(Vec::new()) };
}

/// Has `look` called after each sleep of this thread, for as long as it is there.
pub fn register(look: &Rc<impl Look + 'static>) {
    let look: Rc<dyn Look> = Rc::clone(look) as _;
    LOOKS.with_borrow_mut(|looks| {
        looks.retain(|look| look.strong_count() > 0);
        looks.push(Rc::downgrade(&look));
    });
}

/// The thread has slept: to be called by its runtime, as `on_thread_unpark`.
pub fn woken() {
    // A runtime may end while the thread's locals are being destroyed.
    let _ = LOOKS.try_with(|looks| {
        for look in looks.borrow().iter().filter_map(Weak::upgrade) {
            look.look();
        }
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::{Look, register, woken};

    #[derive(Default)]
    struct Counted(Cell<u32>);

    impl Look for Counted {
        fn look(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn what_is_there_is_called_and_what_is_gone_is_not() {
        let (first, second) = (Rc::new(Counted::default()), Rc::new(Counted::default()));
        register(&first);
        register(&second);
        woken();
        drop(first);
        woken();
        assert_eq!(second.0.get(), 2);
    }
}
