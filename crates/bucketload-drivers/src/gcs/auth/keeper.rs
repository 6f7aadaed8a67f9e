//! Keeps an access token fresh, apart from the load.
//!
//! A thread of its own obtains the first token before the first session is open and each further one
//! well before the old one ends, so that no operation ever waits for a token. Sessions look at a
//! number that changes with the token; only when it has changed they fetch the new header line.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use bucketload_core::error::{ErrorKind, OpError};

use super::grant::{Grantor, Token};

/// A token is renewed so long before it ends: the metadata server hands out a new one no earlier than
/// some four minutes before (google-auth libraries use the same margin, 3 min 45 s).
const MARGIN: Duration = Duration::from_secs(225);

/// Pause after a failed renewal.
const PAUSE: Duration = Duration::from_secs(5);

/// The header line that a token becomes.
pub(crate) struct Bearer {
    /// `authorization: Bearer TOKEN` with its line end.
    pub(crate) line: Vec<u8>,
    token: Token,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(***)")
    }
}

impl Bearer {
    fn new(token: Token) -> Self {
        let line = format!("authorization: Bearer {}\r\n", token.secret.expose());
        Self {
            line: line.into_bytes(),
            token,
        }
    }

    /// Replaces the token in `text`, which came from a server, by `***`.
    pub(crate) fn scrub(&self, text: &str) -> String {
        text.replace(self.token.secret.expose(), "***")
    }
}

/// What is known.
#[derive(Debug)]
enum State {
    /// The first token has not come yet.
    Waiting,
    /// The last token that came.
    Have(Arc<Bearer>),
    /// No token has ever come; why.
    Failed(OpError),
}

#[derive(Debug)]
struct Board {
    /// Changes with the token; 0 before the first.
    turn: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

impl Board {
    fn post(&self, state: State) {
        let have = matches!(state, State::Have(_));
        let mut posted = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *posted = state;
        if have {
            self.turn.fetch_add(1, Ordering::Release);
        }
        drop(posted);
        self.changed.notify_all();
    }
}

/// The keeper of one account's token.
#[derive(Debug)]
pub(crate) struct Keeper {
    board: Arc<Board>,
    /// Dropped with the keeper, which ends the thread.
    _alive: Sender<()>,
}

impl Keeper {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there is no thread or runtime to be had.
    pub(crate) fn start(grantor: Grantor) -> std::io::Result<Self> {
        let board = Arc::new(Board {
            turn: AtomicU64::new(0),
            state: Mutex::new(State::Waiting),
            changed: Condvar::new(),
        });
        let (alive, gone) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let posted = Arc::clone(&board);
        std::thread::Builder::new()
            .name("token".to_owned())
            .spawn(move || keep(&grantor, &posted, &gone, &runtime))?;
        Ok(Self {
            board,
            _alive: alive,
        })
    }

    /// A number that changes when the token does.
    #[inline]
    pub(crate) fn turn(&self) -> u64 {
        self.board.turn.load(Ordering::Acquire)
    }

    /// The token and its number; waits for the first one.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn bearer(&self) -> Result<(u64, Arc<Bearer>), OpError> {
        let lock = self.board.state.lock();
        let mut state = lock.unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                State::Have(bearer) => return Ok((self.turn(), Arc::clone(bearer))),
                State::Failed(error) => return Err(error.clone()),
                State::Waiting => {
                    let woken = self.board.changed.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// The thread's work.
fn keep(grantor: &Grantor, board: &Board, gone: &Receiver<()>, runtime: &tokio::runtime::Runtime) {
    let mut known: Option<Token> = None;
    loop {
        let pause = match runtime.block_on(grantor.obtain()) {
            Ok(token) => {
                let pause = renewal(token.lifetime);
                if known.as_ref().is_none_or(|k| k.secret != token.secret) {
                    board.post(State::Have(Arc::new(Bearer::new(token.clone()))));
                }
                known = Some(token);
                pause
            }
            Err(error) => {
                // An old token is used until the store refuses it: those failures are counted.
                if known.is_none() {
                    board.post(State::Failed(OpError {
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
        match gone.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// When a token that lasts for `lifetime` is renewed.
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

    use super::{Keeper, renewal};
    use crate::gcs::auth::account::Account;
    use crate::gcs::auth::grant::Grantor;
    use crate::http::{Secret, TlsConfig};

    fn keeper(account: Account) -> Keeper {
        Keeper::start(Grantor::new(account, &TlsConfig::default()).unwrap()).unwrap()
    }

    #[test]
    fn tokens_are_renewed_well_before_they_end() {
        let s = Duration::from_secs;
        assert_eq!(renewal(s(3600)), s(3375));
        assert_eq!(renewal(s(300)), s(150));
        assert_eq!(renewal(s(0)), s(1));
    }

    #[test]
    fn a_given_token_is_there_at_once_and_does_not_print() {
        let keeper = keeper(Account::Token(Secret::new("ya29.x")));
        let (turn, bearer) = keeper.bearer().unwrap();
        assert_eq!((turn, keeper.turn()), (1, 1));
        assert_eq!(bearer.line, b"authorization: Bearer ya29.x\r\n");
        assert!(!format!("{keeper:?} {bearer:?}").contains("ya29"));
        assert_eq!(bearer.scrub("bad ya29.x!"), "bad ***!");
    }

    #[test]
    fn a_missing_file_says_so() {
        let keeper = keeper(Account::TokenFile("/nonexistent/token".into()));
        let error = keeper.bearer().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth);
        assert!(error.detail.contains("/nonexistent/token"), "{error}");
    }
}
