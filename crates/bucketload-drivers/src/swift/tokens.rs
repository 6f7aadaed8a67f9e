//! The token of a driver: obtained when the driver is made, renewed by a thread of its own.
//!
//! No operation ever waits for a renewal. The thread sleeps until four fifths of the token's life are
//! over, signs in again on a connection of its own and puts the new token in place; sessions notice
//! by a generation number that they read before each request. When a token is refused in mid-run
//! (401) the operation fails as it is, and the thread is told to sign in again for those that follow.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant, SystemTime};

use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;

use super::config::{SwiftAuth, SwiftConfig};
use super::error_map;
use super::head::{Call, HeadWriter};
use super::identity::{self, Grant, GrantFields};
use crate::http::client::{Client, IdFields};
use crate::http::connection::Connection;
use crate::http::outgoing::{Body, Plain};
use crate::http::pool::Buffer;
use crate::http::sink::Sink;
use crate::http::{ConfigError, Endpoint, Secret};

/// Names of the identifiers that Swift gives to requests.
pub(crate) const IDS: IdFields = IdFields {
    request: "x-trans-id",
    extended: "",
};

/// Longest time that signing in may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause after a failed renewal, and shortest time between two.
const PAUSE: Duration = Duration::from_secs(5);
/// Most bytes of a Keystone answer: a catalogue of a few hundred services.
const MAX_ANSWER: usize = 1 << 20;

/// The current token, shared by all sessions of a driver.
pub(crate) struct Tokens {
    generation: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    token: Option<Secret>,
    /// When the token is to be renewed.
    renew_at: Option<Instant>,
    /// The generation that a server refused, 0 for none.
    refused: u64,
    over: bool,
}

impl Tokens {
    /// A token that nobody renews.
    pub(crate) fn fixed(token: Option<Secret>) -> Arc<Self> {
        Arc::new(Self::with(token, None))
    }

    fn with(token: Option<Secret>, renew_at: Option<Instant>) -> Self {
        Self {
            generation: AtomicU64::new(1),
            state: Mutex::new(State {
                token,
                renew_at,
                refused: 0,
                over: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `writer` use the current token. Costs one load where it does already.
    #[inline]
    pub(crate) fn refresh(&self, writer: &mut HeadWriter) {
        let generation = self.generation.load(Ordering::Acquire);
        if writer.generation != generation {
            writer.set_token(self.lock().token.as_ref(), generation);
        }
    }

    /// Tells that the token of `generation` was refused.
    #[cold]
    pub(crate) fn refused(&self, generation: u64) {
        if generation == self.generation.load(Ordering::Acquire) {
            self.lock().refused = generation;
            self.changed.notify_all();
        }
    }

    /// Runs `f` with the token's text.
    pub(crate) fn with_token<T>(&self, f: impl FnOnce(&str) -> T) -> T {
        f(self.lock().token.as_ref().map_or("", Secret::expose))
    }

    /// Ends the thread that renews.
    pub(crate) fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    fn replace(&self, grant: Grant) {
        let mut state = self.lock();
        state.renew_at = renewal(grant.lifetime_s);
        state.token = Some(grant.token);
        state.refused = 0;
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Waits until a new token is due; `false` when the driver is gone.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.over {
                return false;
            }
            let left = state
                .renew_at
                .map(|at| at.saturating_duration_since(Instant::now()));
            if state.refused != 0 || left.is_some_and(|left| left.is_zero()) {
                return true;
            }
            state = match left {
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.changed.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    /// Waits for `time` or the driver's end.
    fn pause(&self, time: Duration) {
        let state = self.lock();
        let over = |state: &mut State| !state.over;
        drop(self.changed.wait_timeout_while(state, time, over));
    }
}

/// When a token that lives `lifetime_s` more seconds is to be renewed.
fn renewal(lifetime_s: Option<u64>) -> Option<Instant> {
    let life = Duration::from_secs(lifetime_s?);
    Instant::now().checked_add((life * 4 / 5).max(PAUSE))
}

/// How signing in ended: the tokens, and the storage URL that was told.
type SignedIn = Result<(Arc<Tokens>, Option<String>), OpError>;

/// Asks for tokens.
struct SignIn {
    auth: SwiftAuth,
    client: Client,
    source: Option<IpAddr>,
}

/// Takes token fields and a bounded body.
#[derive(Default)]
struct Answer {
    fields: GrantFields,
    body: Vec<u8>,
}

impl Sink for Answer {
    fn wants_fields(&self) -> bool {
        true
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        self.fields.take(name, value);
    }

    fn looks(&self) -> bool {
        true
    }

    fn data(&mut self, bytes: &[u8]) {
        let room = MAX_ANSWER - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl SignIn {
    /// Signs in once.
    async fn ask(&self) -> Result<Grant, OpError> {
        let endpoint = &self.client.endpoints()[0];
        let what = format!("signing in at {}", endpoint.url());
        let asked = tokio::time::timeout(PATIENCE, self.exchange(endpoint)).await;
        let asked = asked.unwrap_or_else(|_| {
            let detail = format!("no complete answer within {} s", PATIENCE.as_secs());
            Err(OpError::new(ErrorKind::Timeout, detail))
        });
        asked.map_err(|mut error| {
            error.detail = format!("{what}: {}", error.detail).into();
            error
        })
    }

    async fn exchange(&self, endpoint: &Endpoint) -> Result<Grant, OpError> {
        let mut head = Buffer::take();
        let (body, secret) = match &self.auth {
            SwiftAuth::V1 { user, key, .. } => {
                let fields = [
                    ("X-Auth-User", user.as_bytes()),
                    ("X-Auth-Key", key.expose().as_bytes()),
                ];
                let call = Call::new("GET", "", "").fields(&fields);
                HeadWriter::new(endpoint).render(&mut head, &call);
                (Vec::new(), key.expose().to_owned())
            }
            SwiftAuth::Keystone(keystone) => {
                let document = identity::token_request(keystone);
                let at = Endpoint {
                    base_path: identity::tokens_path(keystone),
                    ..endpoint.clone()
                };
                let fields = [("Content-Type", b"application/json".as_slice())];
                let call = Call::new("POST", "", "")
                    .fields(&fields)
                    .length(document.len() as u64);
                HeadWriter::new(&at).render(&mut head, &call);
                (document, keystone.identity.secret().to_owned())
            }
            SwiftAuth::Token(_) | SwiftAuth::Anonymous => {
                return Err(OpError::new(
                    ErrorKind::Auth,
                    "this token cannot be renewed",
                ));
            }
        };
        let mut plain = Plain::new(head, Body::Bytes(&body), false);
        let mut answer = Answer::default();
        let mut probe = Probe::untimed();
        let mut connection = Connection::new(0, self.source);
        let reply = connection
            .perform(&self.client, endpoint, &mut plain, &mut answer, &mut probe)
            .await?;
        if let Some(refusal) = &reply.refusal {
            let location = refusal.field("location");
            let mut error = error_map::to_error(reply.status, &refusal.body, &location, &secret);
            if reply.status == 401 {
                error.detail = "user or password is wrong".into();
            }
            return Err(error);
        }
        let Answer { fields, body } = answer;
        let grant = match &self.auth {
            SwiftAuth::Keystone(keystone) => fields.keystone(&body, keystone, now_s()),
            _ => fields.v1(),
        };
        grant.map_err(|detail| OpError::with_status(ErrorKind::Protocol, reply.status, detail))
    }
}

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// Signs in as `config` says and starts the thread that renews the token; returns the tokens and the
/// storage URL that was told.
///
/// # Errors
/// When a certificate file cannot be used (outer), or signing in fails (inner).
pub(crate) fn sign_in(config: &SwiftConfig) -> Result<SignedIn, ConfigError> {
    let url = match &config.auth {
        SwiftAuth::V1 { url, .. } => url.clone(),
        SwiftAuth::Keystone(keystone) => keystone.url.clone(),
        SwiftAuth::Token(token) => return Ok(Ok((Tokens::fixed(Some(token.clone())), None))),
        SwiftAuth::Anonymous => return Ok(Ok((Tokens::fixed(None), None))),
    };
    let asking = SignIn {
        auth: config.auth.clone(),
        client: Client::new(vec![url], &config.tls, IDS)?,
        source: config.source_addresses.first().copied(),
    };
    let (tell, told) = mpsc::channel();
    let thread = std::thread::Builder::new().name("swift-token".to_owned());
    let spawned = thread.spawn(move || keep(&asking, &tell));
    let lost = |what: String| Err(OpError::new(ErrorKind::Connect, what));
    Ok(match spawned {
        Ok(_) => told
            .recv()
            .unwrap_or_else(|_| lost("the sign-in ended early".to_owned())),
        Err(error) => lost(format!("no thread for signing in: {error}")),
    })
}

/// Tells the first token, then renews it until the driver is gone.
fn keep(asking: &SignIn, tell: &mpsc::Sender<SignedIn>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let first = match &runtime {
        Ok(runtime) => runtime.block_on(asking.ask()),
        Err(error) => Err(OpError::new(ErrorKind::Connect, error.to_string())),
    };
    let grant = match first {
        Ok(grant) => grant,
        Err(error) => return drop(tell.send(Err(error))),
    };
    let renew_at = renewal(grant.lifetime_s);
    let tokens = Arc::new(Tokens::with(Some(grant.token), renew_at));
    let shared = Arc::clone(&tokens);
    if tell.send(Ok((shared, grant.storage_url))).is_err() {
        return;
    }
    let Ok(runtime) = runtime else { return };
    while tokens.wait() {
        if let Ok(grant) = runtime.block_on(asking.ask()) {
            tokens.replace(grant);
        }
        // A service that refuses the sign-in itself is not to be flooded with it.
        tokens.pause(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Grant, Tokens, renewal};
    use crate::http::{Endpoint, Secret};
    use crate::swift::head::{Call, HeadWriter};

    #[test]
    fn sessions_take_a_new_token_over() {
        let tokens = Tokens::fixed(Some(Secret::new("one")));
        let mut writer = HeadWriter::new(&Endpoint::parse("http://h", "test").unwrap());
        let head = |writer: &HeadWriter| {
            let mut out = Vec::new();
            writer.render(&mut out, &Call::new("GET", "", ""));
            String::from_utf8(out).unwrap()
        };
        tokens.refresh(&mut writer);
        assert!(head(&writer).contains("X-Auth-Token: one\r\n"));
        tokens.refused(writer.generation);
        assert_eq!(tokens.lock().refused, 1);
        assert!(tokens.wait(), "a refused token is renewed at once");
        tokens.replace(Grant {
            token: Secret::new("two"),
            storage_url: None,
            lifetime_s: None,
        });
        tokens.refresh(&mut writer);
        assert!(head(&writer).contains("X-Auth-Token: two\r\n"));
        // A late refusal of the old token is no reason to sign in again.
        tokens.refused(1);
        assert_eq!(tokens.lock().refused, 0);
        tokens.end();
        assert!(!tokens.wait());
    }

    #[test]
    fn tokens_are_renewed_well_before_they_end() {
        let now = Instant::now();
        let at = renewal(Some(1000)).unwrap();
        assert!(at > now + Duration::from_secs(700) && at < now + Duration::from_secs(900));
        assert_eq!(renewal(None), None);
        assert!(renewal(Some(0)).unwrap() > now + Duration::from_secs(4));
    }
}
