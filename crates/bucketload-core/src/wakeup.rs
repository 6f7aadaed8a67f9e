//! Lets drivers check for answers as soon as a load thread wakes up, before its event loop asks the kernel again, and
//! lets the thread sleep in a driver instead of the event loop.
//!
//! A driver whose answers do not all come through descriptors [registers](register) an [`AnswerSource`]. The thread's
//! runtime calls [`woken`] after each sleep. A thread whose tasks all wait for such answers may [sleep] in the source,
//! which delivers them sooner than a descriptor does.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::task::{Context, Waker};

/// Delivers answers that have come while the thread slept.
pub trait AnswerSource {
    /// Wakes the tasks whose answers have come, or one task that does so. Returns whether any answer has come. Called
    /// on the thread that registered the source.
    fn wake_answered(&self) -> bool;

    /// If `tasks` tasks wait for answers of this source, sleeps until one comes, or for about a millisecond, and wakes
    /// the tasks whose answers have come. Called on the thread that registered the source.
    fn sleep(&self, tasks: usize) -> Slept;
}

/// How a thread has slept outside its event loop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Slept {
    /// It slept, and answers may have come.
    Briefly,
    /// It slept, answers may have come, and the event loop has not run for a millisecond or more.
    Long,
    /// It did not sleep: other tasks may have work to do, or the last sleep brought no answer.
    Not,
}

thread_local! {
    static SOURCES: RefCell<Vec<Weak<dyn AnswerSource>>> = const { RefCell::new(Vec::new()) };
    static SLEEPER: Cell<Option<Waker>> = const { Cell::new(None) };
    static HAS_SLEEPER: Cell<bool> = const { Cell::new(false) };
}

/// Registers `source` with this thread until it is dropped. It is asked after each sleep of the thread.
pub fn register(source: &Rc<impl AnswerSource + 'static>) {
    let source: Rc<dyn AnswerSource> = Rc::clone(source) as _;
    SOURCES.with_borrow_mut(|sources| {
        sources.retain(|source| source.strong_count() > 0);
        sources.push(Rc::downgrade(&source));
    });
}

/// The thread has slept. Its runtime calls this, as `on_thread_unpark`.
pub fn woken() {
    // A runtime may end while the thread's locals are being destroyed.
    let come = SOURCES.try_with(|sources| {
        let sources = sources.borrow();
        let sources = sources.iter().filter_map(Weak::upgrade);
        // `count` asks every source, even if the first has answers.
        sources.filter(|source| source.wake_answered()).count() > 0
    });
    if come == Ok(true)
        && let Some(sleeper) = SLEEPER.take()
    {
        sleeper.wake();
    }
}

/// States whether a task of this thread is going to [sleep] in a source, for sources that register later.
pub fn expect_sleeper(expected: bool) {
    HAS_SLEEPER.set(expected);
}

/// Whether a task of this thread is expected to [sleep] in a source.
#[must_use]
pub fn has_sleeper() -> bool {
    HAS_SLEEPER.get()
}

/// Sleeps in the source that the thread has registered, if there is exactly one and all `tasks` tasks that have work
/// to do wait for its answers.
pub fn sleep(tasks: usize) -> Slept {
    let only = SOURCES.with_borrow(|sources| match &sources[..] {
        [source] => source.upgrade(),
        _ => None,
    });
    only.map_or(Slept::Not, |source| source.sleep(tasks))
}

/// Wakes the task of `cx` when answers have come while the thread slept in its event loop.
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

    use super::{
        AnswerSource, Slept, expect_sleeper, has_sleeper, register, sleep, wake_after, woken,
    };

    #[derive(Default)]
    struct Counted {
        asked: Cell<u32>,
        come: Cell<bool>,
    }

    impl AnswerSource for Counted {
        fn wake_answered(&self) -> bool {
            self.asked.set(self.asked.get() + 1);
            self.come.get()
        }

        fn sleep(&self, tasks: usize) -> Slept {
            match tasks {
                3 => Slept::Briefly,
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
    fn sources_are_asked_until_they_are_dropped() {
        let (first, second) = (Rc::new(Counted::default()), Rc::new(Counted::default()));
        register(&first);
        register(&second);
        woken();
        drop(first);
        woken();
        assert_eq!(second.asked.get(), 2);
    }

    #[test]
    fn answers_wake_the_sleeper_once() {
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
        assert_eq!(second.asked.get(), 3, "every source is asked");
    }

    #[test]
    fn a_thread_sleeps_in_the_only_source_it_waits_for() {
        assert_eq!(sleep(3), Slept::Not, "there is none");
        let only = Rc::new(Counted::default());
        register(&only);
        assert_eq!(sleep(3), Slept::Briefly);
        assert_eq!(sleep(2), Slept::Not);
        let other = Rc::new(Counted::default());
        register(&other);
        assert_eq!(sleep(3), Slept::Not, "an answer may come to either");
    }

    #[test]
    fn sources_can_ask_whether_there_is_a_sleeper() {
        assert!(!has_sleeper());
        expect_sleeper(true);
        assert!(has_sleeper());
    }
}
