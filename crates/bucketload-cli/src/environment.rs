//! The environment variables and the home folder that targets are found by.
//!
//! In an agent they are the coordinator's, sent with its assignment: every agent then talks to the same
//! service as the same user, whatever its own environment says. What the coordinator sends is exactly
//! what was asked for while it opened the target itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Variables by name. Values may be credentials: never printed.
pub(crate) type Variables = BTreeMap<String, String>;

/// The coordinator's variables, in an agent with an assignment.
static OVERLAY: Mutex<Option<Variables>> = Mutex::new(None);
/// What was asked for and is set.
static CONSULTED: Mutex<Variables> = Mutex::new(Variables::new());

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of variable `name`, if it is set.
pub(crate) fn variable(name: &str) -> Option<String> {
    if let Some(overlay) = &*lock(&OVERLAY) {
        return overlay.get(name).cloned();
    }
    let value = std::env::var(name).ok()?;
    lock(&CONSULTED).insert(name.to_owned(), value.clone());
    Some(value)
}

/// The home folder; none in an agent with an assignment, which has the coordinator's files.
pub(crate) fn home() -> Option<PathBuf> {
    match &*lock(&OVERLAY) {
        Some(_) => None,
        None => std::env::var_os("HOME").map(PathBuf::from),
    }
}

/// Every variable that was asked for so far and is set.
pub(crate) fn consulted() -> Variables {
    lock(&CONSULTED).clone()
}

/// While this lives, the environment is another one.
pub(crate) struct Replaced(());

/// Replaces the environment by `variables`.
pub(crate) fn replace(variables: Variables) -> Replaced {
    *lock(&OVERLAY) = Some(variables);
    Replaced(())
}

impl Drop for Replaced {
    fn drop(&mut self) {
        *lock(&OVERLAY) = None;
    }
}
