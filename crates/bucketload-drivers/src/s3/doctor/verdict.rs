//! What a check says.

use bucketload_target::doctor::State;

/// The outcome of one check.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) state: State,
    pub(super) found: String,
    /// Replaces the remedy of the check's declaration.
    pub(super) remedy: Option<String>,
    /// A setting with which it works; the rest of the examination uses it.
    pub(super) setting: Option<(&'static str, String)>,
}

impl Verdict {
    fn new(state: State, found: impl Into<String>) -> Self {
        Self {
            state,
            found: found.into(),
            remedy: None,
            setting: None,
        }
    }

    pub(super) fn ok(found: impl Into<String>) -> Self {
        Self::new(State::Ok, found)
    }

    pub(super) fn differs(found: impl Into<String>) -> Self {
        Self::new(State::Differs, found)
    }

    pub(super) fn failed(found: impl Into<String>) -> Self {
        Self::new(State::Failed, found)
    }

    pub(super) fn not_tried(found: impl Into<String>) -> Self {
        Self::new(State::NotTried, found)
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub(super) fn setting(mut self, flag: &'static str, value: impl Into<String>) -> Self {
        self.setting = Some((flag, value.into()));
        self
    }
}
