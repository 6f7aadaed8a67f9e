//! The environment variables and the home directory that drivers consult.
//!
//! An agent uses the coordinator's variables, which come with its assignment, so that every agent accesses the same
//! service as the same user, whatever its own environment is. The coordinator sends exactly the variables that were
//! consulted while it opened the target itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Variables by name. Values may be credentials, so they are never printed.
pub(crate) type Variables = BTreeMap<String, String>;

/// The coordinator's variables, in an agent with an assignment.
static OVERLAY: Mutex<Option<Variables>> = Mutex::new(None);
/// Variables that were consulted and are set.
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

/// The home directory. `None` in an agent with an assignment, which uses the coordinator's files.
pub(crate) fn home() -> Option<PathBuf> {
    match &*lock(&OVERLAY) {
        Some(_) => None,
        None => std::env::var_os("HOME").map(PathBuf::from),
    }
}

/// Every variable that was consulted so far and is set.
pub(crate) fn consulted() -> Variables {
    lock(&CONSULTED).clone()
}

/// Replaces the environment as long as this value lives.
pub(crate) struct EnvironmentOverlay(());

/// Replaces the environment by `variables`.
pub(crate) fn replace(variables: Variables) -> EnvironmentOverlay {
    *lock(&OVERLAY) = Some(variables);
    EnvironmentOverlay(())
}

impl Drop for EnvironmentOverlay {
    fn drop(&mut self) {
        *lock(&OVERLAY) = None;
    }
}
