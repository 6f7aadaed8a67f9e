//! An agent: waits for a coordinator, or calls one, and carries out its share of runs.
//!
//! ```text
//!  network (a runtime on its own thread)            run thread: Host::execute
//!  Link ── Assign ────────────────────────────────▶ opens the target
//!       ── Phase, Calibrate, Start, Stop ─────────▶ Conductor: Orders, StartGate, StopHandle
//!       ◀─ Interval, Event, Slow, PhaseDone ─────── Conductor: RunSink
//!       ◀─ Ops ─ op-log thread ◀── batches ──────── load threads
//!  Ping ◀▶ Pong: answered here, whatever the load does
//! ```
//!
//! When the coordinator is silent for longer than it said itself, or the connection breaks, the load is
//! stopped at once: nobody would see what it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use crate::access::Access;
use crate::conductor::Conductor;
use crate::error::{AgentsError, CallError, described};
use crate::host;
use crate::message::{
    Assignment, Frame, Greeting, Problem, ToAgent, ToCoordinator, control, parse,
};
use crate::service::{self, Handler, Link};
use crate::stdio::Stdio;

/// Silence after which a coordinator that has not said its own limit yet counts as lost.
const FIRST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a load may take to end after it was stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Carries out an assignment: opens the target and drives it.
pub trait Host: Send + Sync + 'static {
    /// Opens the target of `assignment`, tells the conductor, and carries out its orders
    /// ([`bucketload_run::serve`]) until there are none left.
    ///
    /// # Errors
    /// When the target cannot be opened, or the plan not be carried out.
    fn execute(&self, assignment: Assignment, conductor: &mut Conductor) -> Result<(), Problem>;
}

/// What an agent says about itself without a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// Version of the program.
    pub version: String,
    /// Version of the protocol.
    pub protocol: u32,
    /// Name of the host.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// The run that it works for, if any.
    pub busy: Option<String>,
    /// Its wall clock, nanoseconds since 1970.
    pub wall_unix_ns: u64,
}

/// An agent's settings.
#[derive(Clone)]
pub struct AgentOptions {
    /// What it presents and wants to see.
    pub access: Access,
    /// Its number, where its launcher gave it one.
    pub rank: Option<u32>,
    /// Who carries out assignments.
    pub host: Arc<dyn Host>,
    /// Where it says what happens.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
}

impl AgentOptions {
    fn greeting(&self) -> Greeting {
        Greeting {
            version: self.access.version.clone(),
            protocol: self.access.protocol,
            host: host::name(),
            pid: std::process::id(),
            rank: self.rank,
            timeout_ns: 0,
        }
    }
}

/// Serves one run after another at `listener`, each to its end, until `stop` ends; a single one with
/// `once`. A run that is under way when `stop` ends is served to its end, which is said.
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
    let waiting = Arc::new(Waiting {
        options,
        busy: Mutex::new(None),
        runtime: tokio::runtime::Handle::current(),
        ended: once.then_some(ended.clone()),
    });
    let handler: Arc<dyn Handler> = Arc::new(Arc::clone(&waiting));
    let mut outcome = Ok(());
    let shutdown = async {
        tokio::select! {
            () = stop => waiting.stopped(),
            Some(how) = end.recv() => outcome = how,
        }
    };
    // Kept, so that the channel stays open without a `once`.
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
        AgentsError::usage(format!("standard input and output are no connection: {e}"))
    })?;
    let (ended, mut end) = mpsc::channel(1);
    let access = Arc::new(options.access.clone());
    let waiting = Arc::new(Waiting {
        options,
        busy: Mutex::new(None),
        runtime: tokio::runtime::Handle::current(),
        ended: Some(ended),
    });
    let handler: Arc<dyn Handler> = Arc::new(Arc::clone(&waiting));
    let mut outcome = Ok(());
    let shutdown = async {
        match tokio::time::timeout(FIRST_TIMEOUT, waiting.begun()).await {
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

/// Calls the coordinator at `address`, again and again until `deadline` is over, and serves its run.
///
/// # Errors
/// When nobody answers, the coordinator refuses, or the run was lost.
pub async fn dial(
    options: AgentOptions,
    address: &str,
    deadline: Duration,
) -> Result<(), AgentsError> {
    let link = call_until(address, &options.access, deadline).await?;
    Session::new(options, link).serve().await
}

/// Calls `address` until somebody answers, at most for `deadline`.
pub(crate) async fn call_until(
    address: &str,
    access: &Access,
    deadline: Duration,
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
        if begun.elapsed() + Duration::from_millis(300) > deadline {
            return Err(AgentsError::aborted(format!(
                "{address} could not be reached within {} s: {error}",
                deadline.as_secs()
            )));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// An agent that waits to be called.
struct Waiting {
    options: AgentOptions,
    /// The run that is served, once it is known; `Some("")` before.
    busy: Mutex<Option<String>>,
    runtime: tokio::runtime::Handle,
    /// Where the end of the only run goes.
    ended: Option<mpsc::Sender<Result<(), AgentsError>>>,
}

impl Waiting {
    fn busy(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says why the agent does not end at once, where it does not.
    fn stopped(&self) {
        if let Some(run) = &*self.busy() {
            (self.options.say)(&format!("stopping when run {run} has ended"));
        }
    }

    /// Waits until somebody has called.
    async fn begun(&self) {
        while self.busy().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A handler has no handle of itself; this one has.
impl Handler for Arc<Waiting> {
    fn session(&self, link: Link) -> Result<(), Status> {
        let mut busy = self.busy();
        if let Some(run) = &*busy {
            return Err(Status::resource_exhausted(format!(
                "the agent works for run {run}; wait until that is over, or name another agent"
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
        let greeting = self.options.greeting();
        let answer = ProbeAnswer {
            version: greeting.version,
            protocol: greeting.protocol,
            host: greeting.host,
            pid: greeting.pid,
            busy: self.busy().clone(),
            wall_unix_ns: host::unix_ns(),
        };
        Bytes::from(serde_json::to_vec(&answer).unwrap_or_default())
    }
}

/// Learns the identifier of a run.
type OnAssigned = Box<dyn FnMut(&str) + Send>;

/// One run, seen from the network.
struct Session {
    options: AgentOptions,
    link: Link,
    timeout: Duration,
    on_assigned: Option<OnAssigned>,
    run: Option<Running>,
}

/// The run thread.
struct Running {
    remote: crate::conductor::Remote,
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
            run.remote.abandon();
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

    /// Until the coordinator says goodbye; the error says why there was none.
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
                        described(&status)
                    ));
                }
                Ok(Ok(Some(bytes))) => Frame::of(bytes),
            };
            let Some(Frame::Control(bytes)) = frame else {
                return Err("the coordinator sent something that is no message".to_owned());
            };
            match parse(&bytes).map_err(|e| format!("the coordinator sent {e}"))? {
                ToAgent::Ping { t0 } => self.pong(t0),
                ToAgent::Hello(greeting) => self.hello(&greeting).await?,
                ToAgent::Assign(assignment) => self.assign(*assignment)?,
                ToAgent::Bye => return Ok(()),
                order => {
                    if let Some(run) = &self.run {
                        run.remote.order(&order);
                    }
                }
            }
        }
    }

    /// Answers a life sign. When so much is on its way that there is no room, the answer is left out:
    /// what is on its way is a sign of life too.
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
        if self.link.clear {
            (self.options.say)(
                "the token and the target's credentials came over the network without TLS: who can listen \
                 there has them; use --agent-cert, --agent-key and --agent-ca on both sides",
            );
        }
        let (mut conductor, remote) = Conductor::new(self.link.out.clone());
        let (done, ended) = oneshot::channel();
        let over = Arc::new(AtomicBool::new(false));
        let (host, flag) = (Arc::clone(&self.options.host), Arc::clone(&over));
        std::thread::Builder::new()
            .name("agent-run".to_owned())
            .spawn(move || {
                let outcome = host.execute(assignment, &mut conductor);
                if let Err(problem) = &outcome {
                    conductor.refused(problem.clone());
                }
                flag.store(true, Ordering::Release);
                drop(conductor);
                let _ = done.send(outcome);
            })
            .map_err(|e| format!("no thread for the run: {e}"))?;
        self.run = Some(Running {
            remote,
            ended,
            over,
        });
        Ok(())
    }
}
