//! What a load thread looks at as soon as it wakes up, before its event loop asks the kernel once more, and what it
//! sleeps in instead of the event loop.
//!
//! A driver whose answers do not come through descriptors alone [registers](register) what knows of them; the
//! thread's runtime calls [`woken`] after each sleep. A thread whose tasks all wait for such answers may
//! [sleep] there, where the kernel hands them over sooner than through a descriptor.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::task::{Context, Waker};

/// Knows of answers that have come while the thread slept.
pub trait Look {
    /// Wakes a task that waits for what has come; whether anything has. Called on the thread that registered it.
    fn look(&self) -> bool;

    /// If `tasks` tasks wait for answers, sleeps until one comes, or for a millisecond or so, and looks. Called on
    /// the thread that registered it.
    fn sleep(&self, tasks: usize) -> Slept;
}

/// How a thread has slept outside of its event loop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Slept {
    /// Something may have come.
    Well,
    /// As well, and the event loop has not had its turn for a millisecond or more.
    Long,
    /// Not at all: other tasks may have to go on, or the last sleep was in vain.
    Not,
}

thread_local! {
    static LOOKS: RefCell<Vec<Weak<dyn Look>>> = const { RefCell::new(Vec::new()) };
    static SLEEPER: Cell<Option<Waker>> = const { Cell::new(None) };
    static HAS_SLEEPER: Cell<bool> = const { Cell::new(false) };
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
    let come = LOOKS.try_with(|looks| {
        let looks = looks.borrow();
        let looks = looks.iter().filter_map(Weak::upgrade);
        // Every one, also where the first one has answers.
        looks.filter(|look| look.look()).count() > 0
    });
    if come == Ok(true)
        && let Some(sleeper) = SLEEPER.take()
    {
        sleeper.wake();
    }
}

/// Says whether a task of this thread is going to [sleep] in what drivers register; for what registers later.
pub fn expect_sleeper(expected: bool) {
    HAS_SLEEPER.set(expected);
}

/// Whether a task of this thread sleeps in what registers, as far as is known.
#[must_use]
pub fn has_sleeper() -> bool {
    HAS_SLEEPER.get()
}

/// Sleeps in what the thread has registered, if that is one thing and all of its `tasks` tasks that have work to do wait
/// for answers of it.
pub fn sleep(tasks: usize) -> Slept {
    let only = LOOKS.with_borrow(|looks| match &looks[..] {
        [look] => look.upgrade(),
        _ => None,
    });
    only.map_or(Slept::Not, |look| look.sleep(tasks))
}

/// Has the task of `cx` woken when something has come while the thread slept in its event loop.
pub fn wake_after(cx: &Context<'_>) {
    SLEEPER.set(Some(cx.waker().clone()));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Wake};

    use super::{Look, Slept, expect_sleeper, has_sleeper, register, sleep, wake_after, woken};

    #[derive(Default)]
    struct Counted {
        looks: Cell<u32>,
        come: Cell<bool>,
    }

    impl Look for Counted {
        fn look(&self) -> bool {
            self.looks.set(self.looks.get() + 1);
            self.come.get()
        }

        fn sleep(&self, tasks: usize) -> Slept {
            match tasks {
                3 => Slept::Well,
                _ => Slept::Not,
            }
        }
    }

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
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
        assert_eq!(second.looks.get(), 2);
    }

    #[test]
    fn the_sleeper_is_woken_once_by_what_has_come() {
        let (first, second) = (Rc::new(Counted::default()), Rc::new(Counted::default()));
        register(&first);
        register(&second);
        let count = Arc::new(Woken::default());
        wake_after(&Context::from_waker(&Arc::clone(&count).into()));
        woken();
        assert_eq!(count.0.load(Ordering::Relaxed), 0, "nothing has come");
        first.come.set(true);
        woken();
        woken();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(second.looks.get(), 3, "every one is looked at");
    }

    #[test]
    fn a_thread_sleeps_in_the_only_thing_it_waits_for() {
        assert_eq!(sleep(3), Slept::Not, "there is none");
        let only = Rc::new(Counted::default());
        register(&only);
        assert_eq!(sleep(3), Slept::Well);
        assert_eq!(sleep(2), Slept::Not);
        let other = Rc::new(Counted::default());
        register(&other);
        assert_eq!(sleep(3), Slept::Not, "an answer may come to either");
    }

    #[test]
    fn what_registers_can_know_of_the_sleeper() {
        assert!(!has_sleeper());
        expect_sleeper(true);
        assert!(has_sleeper());
    }
}
