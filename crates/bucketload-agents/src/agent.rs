//! An agent: waits for a coordinator, or calls one, and carries out its share of runs.
//!
//! ```text
//!  network (a runtime on its own thread)            run thread: Executor::execute
//!  Link ── Assign ────────────────────────────────▶ opens the target
//!       ── Phase, Calibrate, Start, Stop ─────────▶ Conductor: Orders, StartGate, StopHandle
//!       ◀─ Interval, Event, Slow, PhaseDone ─────── Conductor: RunSink
//!       ◀─ Ops ─ op-log thread ◀── batches ──────── load threads
//!  Ping ◀▶ Pong: answered here, whatever the load does
//! ```
//!
//! When the coordinator is silent for longer than the time-out it announced, or the connection breaks, the
//! agent stops the load at once: nobody would see its results.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use crate::access::Access;
use crate::conductor::Conductor;
use crate::error::{AgentsError, CallError, status_text};
use crate::host;
use crate::lock;
use crate::message::{
    Assignment, Frame, Greeting, Problem, ToAgent, ToCoordinator, control, parse,
};
use crate::service::{self, Handler, Link};
use crate::stdio::Stdio;

/// Silence after which the coordinator counts as lost, until it announces its own time-out.
const FIRST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a load may take to end after a stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Carries out an assignment: opens the target and runs the load.
pub trait Executor: Send + Sync + 'static {
    /// Opens the target of `assignment`, reports to the conductor, and carries out its orders
    /// ([`bucketload_run::serve`]) until there are none left.
    ///
    /// # Errors
    /// When the target cannot be opened or the plan cannot be carried out.
    fn execute(&self, assignment: Assignment, conductor: &mut Conductor) -> Result<(), Problem>;
}

/// How an agent describes itself outside a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// Version of the program.
    pub version: String,
    /// Version of the protocol.
    pub protocol: u32,
    /// Name of the host.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// The run it is serving, if any.
    pub busy: Option<String>,
    /// Its wall clock, nanoseconds since 1970.
    pub wall_unix_ns: u64,
}

impl ProbeAnswer {
    /// The answer of this process, encoded.
    pub(crate) fn encode(access: &Access, busy: Option<String>) -> Bytes {
        let answer = Self {
            version: access.version.clone(),
            protocol: access.protocol,
            host: host::name(),
            pid: std::process::id(),
            busy,
            wall_unix_ns: host::unix_ns(),
        };
        Bytes::from(serde_json::to_vec(&answer).unwrap_or_default())
    }
}

/// An agent's settings.
#[derive(Clone)]
pub struct AgentOptions {
    /// Credentials and version of this side.
    pub access: Access,
    /// Its rank, if the launcher gave it one.
    pub rank: Option<u32>,
    /// Carries out assignments.
    pub executor: Arc<dyn Executor>,
    /// Receives messages for the user.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
}

impl AgentOptions {
    fn greeting(&self) -> Greeting {
        Greeting {
            rank: self.rank,
            ..Greeting::new(&self.access)
        }
    }
}

/// Serves one run after another at `listener` until `stop` resolves; with `once`, a single run. A run in
/// progress when `stop` resolves is still served to its end, and the user is told so.
///
/// # Errors
/// When the listener breaks; with `once` also when the run was lost.
pub async fn listen(
    options: AgentOptions,
    listener: TcpListener,
    once: bool,
    stop: impl Future<Output = ()>,
) -> Result<(), AgentsError> {
    let (ended, mut end) = mpsc::channel(1);
    let access = Arc::new(options.access.clone());
    let waiting = WaitingAgent::new(options, once.then_some(ended.clone()));
    let handler: Arc<dyn Handler> = Arc::new(Arc::clone(&waiting));
    let mut outcome = Ok(());
    let shutdown = async {
        tokio::select! {
            () = stop => waiting.stopped(),
            Some(how) = end.recv() => outcome = how,
        }
    };
    // Keeps the channel open without `once`.
    let _ended = ended;
    service::serve(listener, access, handler, shutdown)
        .await
        .map_err(AgentsError::aborted)?;
    outcome
}

/// Serves one run over standard input and output.
///
/// # Errors
/// When the run was lost.
pub async fn serve_stdio(options: AgentOptions) -> Result<(), AgentsError> {
    let stream = Stdio::take().map_err(|e| {
        AgentsError::usage(format!(
            "standard input and output cannot be used as a connection: {e}"
        ))
    })?;
    let (ended, mut end) = mpsc::channel(1);
    let access = Arc::new(options.access.clone());
    let waiting = WaitingAgent::new(options, Some(ended));
    let handler: Arc<dyn Handler> = Arc::new(Arc::clone(&waiting));
    let mut outcome = Ok(());
    let shutdown = async {
        match tokio::time::timeout(FIRST_TIMEOUT, waiting.first_call()).await {
            Ok(()) => {
                if let Some(how) = end.recv().await {
                    outcome = how;
                }
            }
            Err(_) => outcome = Err(AgentsError::aborted("nobody called within 30 s")),
        }
    };
    let served = service::serve_one(stream, access, handler, shutdown).await;
    served.map_err(AgentsError::aborted)?;
    outcome
}

/// Calls the coordinator at `address`, retrying for `deadline`, and serves its run.
///
/// # Errors
/// When nobody answers, the coordinator refuses, or the run was lost.
pub async fn dial(
    options: AgentOptions,
    address: &str,
    deadline: Duration,
) -> Result<(), AgentsError> {
    let link = call_until(address, &options.access, deadline, &|_| {}).await?;
    Session::new(options, link).serve().await
}

/// Calls `address` until somebody answers, for at most `deadline`. `failed` hears why an attempt failed.
pub(crate) async fn call_until(
    address: &str,
    access: &Access,
    deadline: Duration,
    failed: &(dyn Fn(&str) + Sync),
) -> Result<Link, AgentsError> {
    let begun = tokio::time::Instant::now();
    loop {
        let attempt = tokio::time::timeout(Duration::from_secs(10), service::call(address, access));
        let error = match attempt.await {
            Ok(Ok(link)) => return Ok(link),
            Ok(Err(CallError::Refused(text))) => {
                return Err(AgentsError::usage(format!("{address}: {text}")));
            }
            Ok(Err(other)) => other.message().to_owned(),
            Err(_) => "no answer within 10 s".to_owned(),
        };
        failed(&error);
        if begun.elapsed() + Duration::from_millis(300) > deadline {
            return Err(AgentsError::aborted(format!(
                "{address} could not be reached within {} s: {error}",
                deadline.as_secs()
            )));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

type OutcomeSender = mpsc::Sender<Result<(), AgentsError>>;

/// An agent that waits for a coordinator to call.
struct WaitingAgent {
    options: AgentOptions,
    /// The run being served; `Some("")` until its id is known.
    busy: Mutex<Option<String>>,
    runtime: tokio::runtime::Handle,
    /// Receives the outcome of the only run, with `once`.
    ended: Option<OutcomeSender>,
}

impl WaitingAgent {
    fn new(options: AgentOptions, ended: Option<OutcomeSender>) -> Arc<Self> {
        Arc::new(Self {
            options,
            busy: Mutex::new(None),
            runtime: tokio::runtime::Handle::current(),
            ended,
        })
    }

    fn busy(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        lock(&self.busy)
    }

    /// Tells the user why the agent does not exit at once, if a run is in progress.
    fn stopped(&self) {
        if let Some(run) = &*self.busy() {
            (self.options.say)(&format!("stopping when run {run} has ended"));
        }
    }

    /// Waits for the first call.
    async fn first_call(&self) {
        while self.busy().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

// On the `Arc`, because a session needs its own handle to the agent.
impl Handler for Arc<WaitingAgent> {
    fn session(&self, link: Link) -> Result<(), Status> {
        let mut busy = self.busy();
        if let Some(run) = &*busy {
            return Err(Status::resource_exhausted(format!(
                "the agent is serving run {run}; wait until that run ends, or name another agent"
            )));
        }
        *busy = Some(String::new());
        drop(busy);
        let this = Arc::clone(self);
        self.runtime.spawn(async move {
            let say = Arc::clone(&this.options.say);
            let mut session = Session::new(this.options.clone(), link);
            session.on_assigned = Some({
                let this = Arc::clone(&this);
                Box::new(move |run| *this.busy() = Some(run.to_owned()))
            });
            let outcome = session.serve().await;
            if let Err(error) = &outcome {
                say(&error.message);
            }
            match &this.ended {
                Some(ended) => {
                    let _ = ended.send(outcome).await;
                }
                None => *this.busy() = None,
            }
        });
        Ok(())
    }

    fn probe(&self) -> Bytes {
        ProbeAnswer::encode(&self.options.access, self.busy().clone())
    }
}

/// Called with the identifier of an assigned run.
type OnAssigned = Box<dyn FnMut(&str) + Send>;

/// The network side of one run.
struct Session {
    options: AgentOptions,
    link: Link,
    timeout: Duration,
    on_assigned: Option<OnAssigned>,
    run: Option<Running>,
}

/// The run thread, seen from the network.
struct Running {
    handle: crate::conductor::RunHandle,
    ended: oneshot::Receiver<Result<(), Problem>>,
    over: Arc<AtomicBool>,
}

impl Session {
    fn new(options: AgentOptions, link: Link) -> Self {
        Self {
            options,
            link,
            timeout: FIRST_TIMEOUT,
            on_assigned: None,
            run: None,
        }
    }

    async fn serve(mut self) -> Result<(), AgentsError> {
        let hello = control(&ToCoordinator::Hello(self.options.greeting()));
        let _ = self.link.out.control.send(hello).await;
        let outcome = self.converse().await;
        if let Some(run) = self.run.take() {
            let was_over = run.over.load(Ordering::Acquire);
            run.handle.abandon();
            let ended = tokio::time::timeout(STOP_TIMEOUT, run.ended).await;
            if ended.is_err() {
                return Err(AgentsError::aborted(
                    "the load did not end within 30 s after it was stopped",
                ));
            }
            return outcome.map_err(|reason| {
                AgentsError::aborted(match was_over {
                    true => reason,
                    false => format!("{reason}; the load was stopped"),
                })
            });
        }
        outcome.map_err(AgentsError::aborted)
    }

    /// Processes messages until the coordinator says `Bye`; the error says why it did not.
    async fn converse(&mut self) -> Result<(), String> {
        loop {
            let next = tokio::time::timeout(self.timeout, self.link.incoming.message()).await;
            let frame = match next {
                Err(_) => {
                    return Err(format!(
                        "the coordinator was silent for {} s",
                        self.timeout.as_secs_f64()
                    ));
                }
                Ok(Ok(None)) => return Err("the coordinator closed the connection".to_owned()),
                Ok(Err(status)) => {
                    return Err(format!(
                        "the connection to the coordinator broke: {}",
                        status_text(&status)
                    ));
                }
                Ok(Ok(Some(bytes))) => Frame::of(bytes),
            };
            let Some(Frame::Control(bytes)) = frame else {
                return Err("the coordinator sent something that is not a message".to_owned());
            };
            match parse(&bytes).map_err(|e| format!("the coordinator sent {e}"))? {
                ToAgent::Ping { t0 } => self.pong(t0),
                ToAgent::Hello(greeting) => self.hello(&greeting).await?,
                ToAgent::Assign(assignment) => self.assign(*assignment)?,
                ToAgent::Bye => return Ok(()),
                order => {
                    if let Some(run) = &self.run {
                        run.handle.order(&order);
                    }
                }
            }
        }
    }

    /// Answers a ping. With a full queue it skips the answer: the queued messages show that the agent is alive.
    fn pong(&self, t0: u64) {
        let t1 = bucketload_run::now_ns();
        let pong = ToCoordinator::Pong {
            t0,
            t1,
            t2: bucketload_run::now_ns(),
            wall_ns: host::wall_minus_run_clock_ns(),
        };
        let _ = self.link.out.control.try_send(control(&pong));
    }

    async fn hello(&mut self, greeting: &Greeting) -> Result<(), String> {
        let protocol = greeting.protocol.to_string();
        let same = self
            .options
            .access
            .check_version(&greeting.version, &protocol);
        if let Err(reason) = same {
            let bye = ToCoordinator::Bye {
                reason: reason.clone(),
            };
            let _ = self.link.out.control.send(control(&bye)).await;
            return Err(reason);
        }
        if greeting.timeout_ns > 0 {
            self.timeout = Duration::from_nanos(greeting.timeout_ns);
        }
        Ok(())
    }

    fn assign(&mut self, assignment: Assignment) -> Result<(), String> {
        if self.run.is_some() {
            return Err("the coordinator gave a second assignment".to_owned());
        }
        if let Some(tell) = &mut self.on_assigned {
            tell(&assignment.run_id);
        }
        (self.options.say)(&format!(
            "run {}: agent {} of {} for {}",
            assignment.run_id, assignment.index, assignment.of, self.link.peer
        ));
        if self.link.plaintext {
            (self.options.say)(
                "the token and the target's credentials crossed the network without TLS, so anyone who can \
                 listen there has them; use --agent-cert, --agent-key and --agent-ca on both sides",
            );
        }
        let (mut conductor, handle) = Conductor::new(self.link.out.clone());
        let (done, ended) = oneshot::channel();
        let over = Arc::new(AtomicBool::new(false));
        let (executor, flag) = (Arc::clone(&self.options.executor), Arc::clone(&over));
        std::thread::Builder::new()
            .name("agent-run".to_owned())
            .spawn(move || {
                let outcome = executor.execute(assignment, &mut conductor);
                if let Err(problem) = &outcome {
                    conductor.refused(problem.clone());
                }
                flag.store(true, Ordering::Release);
                drop(conductor);
                let _ = done.send(outcome);
            })
            .map_err(|e| format!("cannot start the run thread: {e}"))?;
        self.run = Some(Running {
            handle,
            ended,
            over,
        });
        Ok(())
    }
}
