//! Renews an access token in the background.
//!
//! A dedicated thread obtains the first token before the first session opens, and each later token
//! well before the previous one expires, so no operation waits for a token. Sessions compare a
//! generation number, and fetch the new header line only when the number has changed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use bucketload_core::error::{ErrorKind, OpError, OpResult};

use super::grant::{AccessToken, TokenSource};

/// How long before its expiry a token is renewed. The metadata server issues a new token no earlier
/// than about four minutes before expiry (google-auth libraries use the same margin, 3 min 45 s).
const MARGIN: Duration = Duration::from_secs(225);

/// Pause after a failed renewal.
const PAUSE: Duration = Duration::from_secs(5);

/// The header line for a token.
pub(crate) struct Bearer {
    /// `authorization: Bearer TOKEN`, including the line end.
    pub(crate) line: Vec<u8>,
    token: AccessToken,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(***)")
    }
}

impl Bearer {
    fn new(token: AccessToken) -> Self {
        let line = format!("authorization: Bearer {}\r\n", token.secret.expose());
        Self {
            line: line.into_bytes(),
            token,
        }
    }

    /// Replaces the token in `text`, a server's message, with `***`.
    pub(crate) fn scrub(&self, text: &str) -> String {
        text.replace(self.token.secret.expose(), "***")
    }
}

#[derive(Debug)]
enum TokenState {
    /// The first token has not arrived yet.
    Waiting,
    /// The latest token.
    Have(Arc<Bearer>),
    /// Obtaining the first token failed.
    Failed(OpError),
}

#[derive(Debug)]
struct SharedToken {
    /// Incremented with each token; 0 before the first.
    generation: AtomicU64,
    state: Mutex<TokenState>,
    changed: Condvar,
}

impl SharedToken {
    fn publish(&self, state: TokenState) {
        let have = matches!(state, TokenState::Have(_));
        let mut current = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *current = state;
        if have {
            self.generation.fetch_add(1, Ordering::Release);
        }
        drop(current);
        self.changed.notify_all();
    }
}

/// Renews one account's token until dropped.
#[derive(Debug)]
pub(crate) struct TokenRefresher {
    token: Arc<SharedToken>,
    /// Dropping this sender ends the thread.
    _stop: Sender<()>,
}

impl TokenRefresher {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the thread or its runtime cannot be created.
    pub(crate) fn start(source: TokenSource) -> std::io::Result<Self> {
        let token = Arc::new(SharedToken {
            generation: AtomicU64::new(0),
            state: Mutex::new(TokenState::Waiting),
            changed: Condvar::new(),
        });
        let (stop, stopped) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::clone(&token);
        std::thread::Builder::new()
            .name("token".to_owned())
            .spawn(move || refresh_until_stopped(&source, &shared, &stopped, &runtime))?;
        Ok(Self { token, _stop: stop })
    }

    /// The number of tokens obtained so far.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.token.generation.load(Ordering::Acquire)
    }

    /// The token and its generation; waits for the first token.
    ///
    /// # Errors
    /// When no token could be obtained.
    pub(crate) fn bearer(&self) -> OpResult<(u64, Arc<Bearer>)> {
        let lock = self.token.state.lock();
        let mut state = lock.unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                TokenState::Have(bearer) => return Ok((self.generation(), Arc::clone(bearer))),
                TokenState::Failed(error) => return Err(error.clone()),
                TokenState::Waiting => {
                    let woken = self.token.changed.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

fn refresh_until_stopped(
    source: &TokenSource,
    shared: &SharedToken,
    stopped: &Receiver<()>,
    runtime: &tokio::runtime::Runtime,
) {
    let mut current: Option<AccessToken> = None;
    loop {
        let pause = match runtime.block_on(source.obtain()) {
            Ok(token) => {
                let pause = renewal(token.lifetime);
                if current.as_ref().is_none_or(|k| k.secret != token.secret) {
                    shared.publish(TokenState::Have(Arc::new(Bearer::new(token.clone()))));
                }
                current = Some(token);
                pause
            }
            Err(error) => {
                // Sessions use an old token until the store refuses it; those failures are counted.
                if current.is_none() {
                    shared.publish(TokenState::Failed(OpError {
                        kind: match error.kind {
                            ErrorKind::Protocol => ErrorKind::Auth,
                            kind => kind,
                        },
                        ..error
                    }));
                }
                PAUSE
            }
        };
        match stopped.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// How long to wait before renewing a token that is valid for `lifetime`.
fn renewal(lifetime: Duration) -> Duration {
    lifetime
        .saturating_sub(MARGIN)
        .max(lifetime / 2)
        .max(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bucketload_core::error::ErrorKind;

    use super::{TokenRefresher, renewal};
    use crate::gcs::auth::account::Account;
    use crate::gcs::auth::grant::TokenSource;
    use crate::http::{Secret, TlsConfig};

    fn refresher(account: Account) -> TokenRefresher {
        TokenRefresher::start(TokenSource::new(account, &TlsConfig::default()).unwrap()).unwrap()
    }

    #[test]
    fn tokens_are_renewed_well_before_they_expire() {
        let s = Duration::from_secs;
        assert_eq!(renewal(s(3600)), s(3375));
        assert_eq!(renewal(s(300)), s(150));
        assert_eq!(renewal(s(0)), s(1));
    }

    #[test]
    fn a_given_token_is_available_at_once_and_is_not_printed() {
        let refresher = refresher(Account::Token(Secret::new("ya29.x")));
        let (generation, bearer) = refresher.bearer().unwrap();
        assert_eq!((generation, refresher.generation()), (1, 1));
        assert_eq!(bearer.line, b"authorization: Bearer ya29.x\r\n");
        assert!(!format!("{refresher:?} {bearer:?}").contains("ya29"));
        assert_eq!(bearer.scrub("bad ya29.x!"), "bad ***!");
    }

    #[test]
    fn a_missing_token_file_is_reported() {
        let refresher = refresher(Account::TokenFile("/nonexistent/token".into()));
        let error = refresher.bearer().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth);
        assert!(error.detail.contains("/nonexistent/token"), "{error}");
    }
}
