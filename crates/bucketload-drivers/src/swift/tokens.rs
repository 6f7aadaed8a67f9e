//! The token of a driver: obtained when the driver is created, renewed by a separate thread.
//!
//! No operation ever waits for a renewal. The thread sleeps for four fifths of the token's lifetime, signs in again on
//! its own connection, and replaces the token. Sessions notice by a generation number that they read before each
//! request. If a server refuses a token during a run (401), the operation fails, and the thread signs in again for the
//! operations that follow.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use bucketload_core::driver::{ErrorKind, OpError, OpResult, Probe};
use bucketload_wire::clock::wall_seconds;

use super::config::{SwiftAuth, SwiftConfig};
use super::error_map;
use super::head::{HeadWriter, SwiftCall};
use super::identity::{self, Grant, GrantFields};
use crate::http::{
    Body, Buffer, Client, ConfigError, Connection, Endpoint, IdFields, Plain, Secret, Sink,
};

/// Header fields with Swift's identifiers of a request.
pub(crate) const IDS: IdFields = IdFields {
    request: "x-trans-id",
    extended: "",
};

/// Time limit for signing in.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed renewal, and minimum time between two renewals.
const PAUSE: Duration = Duration::from_secs(5);
/// Maximum size of a Keystone response, in bytes: a catalogue of a few hundred services.
const MAX_ANSWER: usize = 1 << 20;

/// The current token, shared by all sessions of a driver.
pub(crate) struct Tokens {
    generation: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    token: Option<Secret>,
    /// When to renew the token; `None` for never.
    renew_at: Option<Instant>,
    /// The generation that a server refused; 0 for none.
    refused: u64,
    /// Whether the driver is gone.
    over: bool,
}

impl Tokens {
    /// A token that is never renewed.
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

    /// Gives `writer` the current token. Costs one atomic load if it has that token already.
    #[inline]
    pub(crate) fn refresh(&self, writer: &mut HeadWriter) {
        let generation = self.generation.load(Ordering::Acquire);
        if writer.generation != generation {
            writer.set_token(self.lock().token.as_ref(), generation);
        }
    }

    /// Reports that a server refused the token of `generation`.
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

    /// Ends the renewal thread.
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

    /// Waits until a renewal is due; returns false when the driver is gone.
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

    /// Waits for `time`, or until the driver is gone.
    fn pause(&self, time: Duration) {
        let state = self.lock();
        let over = |state: &mut State| !state.over;
        drop(self.changed.wait_timeout_while(state, time, over));
    }
}

/// When to renew a token that is valid for `lifetime_s` more seconds.
fn renewal(lifetime_s: Option<u64>) -> Option<Instant> {
    let life = Duration::from_secs(lifetime_s?);
    Instant::now().checked_add((life * 4 / 5).max(PAUSE))
}

/// The result of signing in: the tokens, and the storage URL if the service returned one.
type SignedIn = OpResult<(Arc<Tokens>, Option<String>)>;

/// Requests tokens.
struct SignIn {
    auth: SwiftAuth,
    client: Client,
    source: Option<IpAddr>,
}

/// Receives the token's header fields and a bounded body.
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

    fn wants_body(&self) -> bool {
        true
    }

    fn data(&mut self, bytes: &[u8]) {
        let room = MAX_ANSWER - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl SignIn {
    /// Signs in once.
    async fn run(&self) -> OpResult<Grant> {
        let endpoint = &self.client.endpoints()[0];
        let what = format!("signing in at {}", endpoint.url());
        let granted = tokio::time::timeout(SIGN_IN_TIMEOUT, self.exchange(endpoint)).await;
        let granted = granted.unwrap_or_else(|_| {
            let seconds = SIGN_IN_TIMEOUT.as_secs();
            let detail = format!("no complete response within {seconds} s");
            Err(OpError::new(ErrorKind::Timeout, detail))
        });
        granted.map_err(|mut error| {
            error.detail = format!("{what}: {}", error.detail).into();
            error
        })
    }

    async fn exchange(&self, endpoint: &Endpoint) -> OpResult<Grant> {
        let mut head = Buffer::take();
        let (body, secret) = match &self.auth {
            SwiftAuth::V1 { user, key, .. } => {
                let fields = [
                    ("X-Auth-User", user.as_bytes()),
                    ("X-Auth-Key", key.expose().as_bytes()),
                ];
                let call = SwiftCall::new("GET", "", "").fields(&fields);
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
                let call = SwiftCall::new("POST", "", "")
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
            SwiftAuth::Keystone(keystone) => fields.keystone(&body, keystone, wall_seconds()),
            _ => fields.v1(),
        };
        grant.map_err(|detail| OpError::with_status(ErrorKind::Protocol, reply.status, detail))
    }
}

/// Signs in according to `config` and starts the thread that renews the token.
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
    let sign_in = SignIn {
        auth: config.auth.clone(),
        client: Client::new(vec![url], &config.tls, IDS)?,
        source: config.source_addresses.first().copied(),
    };
    let (sender, first) = mpsc::channel();
    let thread = std::thread::Builder::new().name("swift-token".to_owned());
    let spawned = thread.spawn(move || keep_renewed(&sign_in, &sender));
    let lost = |what: String| Err(OpError::new(ErrorKind::Connect, what));
    Ok(match spawned {
        Ok(_) => first
            .recv()
            .unwrap_or_else(|_| lost("the sign-in ended early".to_owned())),
        Err(error) => lost(format!("no thread for signing in: {error}")),
    })
}

/// Sends the first token to `sender`, then renews it until the driver is gone.
fn keep_renewed(sign_in: &SignIn, sender: &mpsc::Sender<SignedIn>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let first = match &runtime {
        Ok(runtime) => runtime.block_on(sign_in.run()),
        Err(error) => Err(OpError::new(ErrorKind::Connect, error.to_string())),
    };
    let grant = match first {
        Ok(grant) => grant,
        Err(error) => return drop(sender.send(Err(error))),
    };
    let renew_at = renewal(grant.lifetime_s);
    let tokens = Arc::new(Tokens::with(Some(grant.token), renew_at));
    let shared = Arc::clone(&tokens);
    if sender.send(Ok((shared, grant.storage_url))).is_err() {
        return;
    }
    let Ok(runtime) = runtime else { return };
    while tokens.wait() {
        if let Ok(grant) = runtime.block_on(sign_in.run()) {
            tokens.replace(grant);
        }
        // Do not flood a service that refuses to sign in.
        tokens.pause(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Grant, Tokens, renewal};
    use crate::http::{Endpoint, Secret};
    use crate::swift::head::{HeadWriter, SwiftCall};

    #[test]
    fn sessions_adopt_a_new_token() {
        let tokens = Tokens::fixed(Some(Secret::new("one")));
        let mut writer = HeadWriter::new(&Endpoint::parse("http://h", "test").unwrap());
        let head = |writer: &HeadWriter| {
            let mut out = Vec::new();
            writer.render(&mut out, &SwiftCall::new("GET", "", ""));
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
        // A late refusal of the old token does not cause another sign-in.
        tokens.refused(1);
        assert_eq!(tokens.lock().refused, 0);
        tokens.end();
        assert!(!tokens.wait());
    }

    #[test]
    fn tokens_are_renewed_well_before_they_expire() {
        let now = Instant::now();
        let at = renewal(Some(1000)).unwrap();
        assert!(at > now + Duration::from_secs(700) && at < now + Duration::from_secs(900));
        assert_eq!(renewal(None), None);
        assert!(renewal(Some(0)).unwrap() > now + Duration::from_secs(4));
    }
}
