//! Brings the agents of a run together: calls agents that listen, accepts agents that call, and starts
//! agents as child processes.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bucketload_core::agent::AgentState;
use bytes::Bytes;
use tokio::process::Command;
use tokio::sync::mpsc;
use tonic::Status;

use super::Fleet;
use super::net::{Listener, Network, keep_pinging, keep_writing, ping};
use super::oplog::OpLogRelay;
use super::roster::Roster;
use crate::access::Access;
use crate::agent::{ProbeAnswer, call_until};
use crate::error::{AgentsError, status_text};
use crate::lock;
use crate::message::{Frame, Greeting, ToAgent, ToCoordinator, control, parse};
use crate::service::{self, Handler, Link};

/// Capacity of the queue of messages from all agents to the collector.
const INBOUND_AHEAD: usize = 256;
/// How long an agent may take to send its greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the coordinator waits for agents in silence.
const FIRST_WORD: Duration = Duration::from_millis(1500);

/// A process to start, which becomes an agent on its standard input and output.
#[derive(Debug)]
pub struct AgentCommand {
    /// Name in messages, such as the host.
    pub name: String,
    /// The command that starts it.
    pub command: std::process::Command,
}

/// Where the agents of a run come from. Ranks follow this order; agents that call may bring ranks of their
/// own.
pub struct GatherOptions {
    /// Processes to start.
    pub children: Vec<AgentCommand>,
    /// Addresses (`HOST:PORT`) at which agents listen.
    pub dial: Vec<String>,
    /// Listener for agents that call, and their number.
    pub listen: Option<(TcpListener, u32)>,
    /// Credentials and version of this side.
    pub access: Access,
    /// Identifier of the run.
    pub run_id: String,
    /// Silence after which either side counts as lost.
    pub timeout: Duration,
    /// How long to wait for all agents.
    pub deadline: Duration,
    /// Hears which agents are still missing, and why.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
}

/// An agent that has sent its greeting.
struct GreetedAgent {
    link: Link,
    greeting: Greeting,
    child: Option<tokio::process::Child>,
    /// Its rank, if it comes from the list of children or addresses.
    listed_rank: Option<u32>,
}

impl Fleet {
    /// Connects all agents.
    ///
    /// # Errors
    /// When one cannot be reached or started within the deadline, is of another version, or refuses.
    pub fn gather(gather: GatherOptions) -> Result<Self, AgentsError> {
        let net = Network::start()?;
        let calling = gather.listen.as_ref().map_or(0, |(_, n)| *n);
        let known = gather.children.len() + gather.dial.len();
        let wanted = known + calling as usize;
        if wanted == 0 {
            return Err(AgentsError::usage("no agents are given"));
        }
        let greeted = net.wait(async {
            let missing = Missing::default();
            let all = connect_all(
                gather.children,
                gather.dial,
                gather.listen,
                &gather.access,
                gather.deadline,
                &missing,
            );
            tokio::select! {
                outcome = tokio::time::timeout(gather.deadline, all) => match outcome {
                    Ok(outcome) => outcome,
                    Err(_) => Err(AgentsError::aborted(format!(
                        "not all of {wanted} agents connected within {} s; missing: {}",
                        gather.deadline.as_secs(),
                        missing.words()
                    ))),
                },
                never = missing.tell(&*gather.say) => match never {},
            }
        })?;
        let ranked = order_by_rank(greeted, wanted)?;
        let addresses = ranked.iter().map(|a| a.link.peer.clone()).collect();
        let roster = Arc::new(Roster::new(&gather.run_id, addresses));
        let relay = OpLogRelay::start()?;
        let (inbound, from) = mpsc::channel(INBOUND_AHEAD);
        let mut fleet = Self {
            peers: Vec::new(),
            inbound: from,
            relay,
            timeout: gather.timeout,
            threads: vec![0; wanted],
            children: Vec::new(),
            roster: Arc::clone(&roster),
            net,
        };
        let hello = control(&ToAgent::Hello(Greeting {
            timeout_ns: u64::try_from(gather.timeout.as_nanos()).unwrap_or(u64::MAX),
            ..Greeting::new(&gather.access)
        }));
        for (agent, rank) in ranked.into_iter().zip(0..) {
            roster.greeted(rank, &agent.greeting, agent.link.plaintext);
            roster.state(rank, AgentState::Connected);
            let _ = agent.link.out.control.try_send(hello.clone());
            ping(&agent.link.out);
            fleet.peers.push(agent.link.out.clone());
            fleet.children.extend(agent.child);
            fleet.net.spawn(
                Listener {
                    rank,
                    out: agent.link.out,
                    incoming: agent.link.incoming,
                    roster: Arc::clone(&roster),
                    inbound: inbound.clone(),
                    rows: fleet.relay.row_sender(),
                    timeout: gather.timeout,
                }
                .listen(),
            );
        }
        fleet
            .net
            .spawn(keep_pinging(fleet.peers.clone(), gather.timeout));
        fleet.net.spawn(keep_writing(Arc::downgrade(&roster)));
        Ok(fleet)
    }
}

/// The agents that have not greeted yet, each with the reason.
#[derive(Clone, Default)]
struct Missing(Arc<Mutex<BTreeMap<String, String>>>);

impl Missing {
    fn note(&self, agent: &str, why: impl Into<String>) {
        lock(&self.0).insert(agent.to_owned(), why.into());
    }

    fn greeted(&self, agent: &str) {
        lock(&self.0).remove(agent);
    }

    fn words(&self) -> String {
        let missing = lock(&self.0);
        let agents = missing
            .iter()
            .map(|(agent, why)| format!("{agent} ({why})"));
        agents.collect::<Vec<_>>().join(", ")
    }

    /// Tells `say` who is missing, first after [`FIRST_WORD`], then whenever that has changed. Never ends.
    async fn tell(&self, say: &(dyn Fn(&str) + Send + Sync)) -> std::convert::Infallible {
        let mut told = String::new();
        loop {
            tokio::time::sleep(FIRST_WORD).await;
            let words = self.words();
            if !words.is_empty() && words != told {
                say(&format!("waiting for agents: {words}"));
                told = words;
            }
        }
    }
}

/// What an attempt failed of: the innermost cause, without the number that the kernel gives it.
fn cause(error: &str) -> String {
    let last = error.rsplit(": ").next().unwrap_or(error);
    let words = last.split(" (os error").next().unwrap_or(last);
    let mut letters = words.chars();
    let first = letters.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Connects to every agent and reads its greeting.
async fn connect_all(
    children: Vec<AgentCommand>,
    dial: Vec<String>,
    listen: Option<(TcpListener, u32)>,
    access: &Access,
    deadline: Duration,
    missing: &Missing,
) -> Result<Vec<GreetedAgent>, AgentsError> {
    let mut tasks = tokio::task::JoinSet::new();
    let mut next_rank = 0;
    for child in children {
        let (access, missing) = (access.clone(), missing.clone());
        let at = next_rank;
        missing.note(&child.name, "starting");
        tasks.spawn(async move {
            let name = child.name.clone();
            let (link, process) = start(child, &access).await?;
            let mut greeted = greet(link, &access, &name).await?;
            missing.greeted(&name);
            greeted.child = Some(process);
            greeted.listed_rank = Some(at);
            Ok::<_, AgentsError>(greeted)
        });
        next_rank += 1;
    }
    for address in dial {
        let (access, missing) = (access.clone(), missing.clone());
        let at = next_rank;
        missing.note(&address, "no answer yet");
        tasks.spawn(async move {
            let failed = |error: &str| missing.note(&address, cause(error));
            let link = call_until(&address, &access, deadline, &failed).await?;
            let mut greeted = greet(link, &access, &address).await?;
            missing.greeted(&address);
            greeted.listed_rank = Some(at);
            Ok(greeted)
        });
        next_rank += 1;
    }
    let mut all = Vec::new();
    let wait = async {
        while let Some(done) = tasks.join_next().await {
            let greeted = done.map_err(|e| AgentsError::aborted(e.to_string()))?;
            all.push(greeted?);
        }
        Ok::<_, AgentsError>(all)
    };
    let (mut all, called) = tokio::try_join!(wait, await_calls(listen, access, deadline, missing))?;
    all.extend(called);
    Ok(all)
}

/// Starts a child process and calls it.
async fn start(
    child: AgentCommand,
    access: &Access,
) -> Result<(Link, tokio::process::Child), AgentsError> {
    let mut command = Command::from(child.command);
    let program = command
        .as_std()
        .get_program()
        .to_string_lossy()
        .into_owned();
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C is for the coordinator, which tells its agents how to stop.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| AgentsError::usage(format!("{}: {program}: {e}", child.name)))?;
    let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(AgentsError::aborted(format!("{}: no pipes", child.name)));
    };
    let stream = tokio::io::join(output, input);
    match service::call_over(stream, &child.name, access).await {
        Ok(link) => Ok((link, process)),
        Err(error) => {
            let status = tokio::time::timeout(Duration::from_secs(2), process.wait()).await;
            let how = match status {
                Ok(Ok(status)) => format!(" ({program} exited: {status})"),
                _ => String::new(),
            };
            Err(AgentsError::aborted(format!(
                "{}: {}{how}",
                child.name,
                error.message()
            )))
        }
    }
}

/// Reads an agent's greeting.
async fn greet(mut link: Link, access: &Access, name: &str) -> Result<GreetedAgent, AgentsError> {
    let broken = |text: &str| AgentsError::aborted(format!("{name}: {text}"));
    let first = tokio::time::timeout(GREETING_TIMEOUT, link.incoming.message())
        .await
        .map_err(|_| broken("sent no greeting within 10 s"))?
        .map_err(|status| broken(&status_text(&status)))?
        .ok_or_else(|| broken("closed the connection"))?;
    let Some(Frame::Control(bytes)) = Frame::of(first) else {
        return Err(broken("sent something that is not a message"));
    };
    let Ok(ToCoordinator::Hello(greeting)) = parse(&bytes) else {
        return Err(broken("sent no greeting"));
    };
    access
        .check_version(&greeting.version, &greeting.protocol.to_string())
        .map_err(|reason| AgentsError::usage(format!("{name}: {reason}")))?;
    Ok(GreetedAgent {
        link,
        greeting,
        child: None,
        listed_rank: None,
    })
}

/// Accepts the calls of agents.
struct CallHandler {
    /// `None` once all agents have called.
    links: Mutex<Option<mpsc::Sender<Link>>>,
    /// Why the last caller was refused.
    refused: Mutex<String>,
    access: Arc<Access>,
}

impl Handler for CallHandler {
    fn session(&self, link: Link) -> Result<(), Status> {
        let links = lock(&self.links);
        let full = || Status::failed_precondition("the coordinator has all its agents already");
        let sent = links.as_ref().ok_or_else(full)?.try_send(link);
        sent.map_err(|_| full())
    }

    fn probe(&self) -> Bytes {
        ProbeAnswer::encode(&self.access, Some("coordinator".to_owned()))
    }

    fn refused(&self, reason: &str) {
        let mut last = lock(&self.refused);
        reason.clone_into(&mut last);
    }
}

async fn await_calls(
    listen: Option<(TcpListener, u32)>,
    access: &Access,
    deadline: Duration,
    missing: &Missing,
) -> Result<Vec<GreetedAgent>, AgentsError> {
    let Some((listener, wanted)) = listen else {
        return Ok(Vec::new());
    };
    let here = match listener.local_addr() {
        Ok(address) => format!("calls at {address}"),
        Err(_) => "calls".to_owned(),
    };
    let broken = |e: std::io::Error| AgentsError::aborted(format!("listening for agents: {e}"));
    listener.set_nonblocking(true).map_err(broken)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(broken)?;
    let (links, mut calls) = mpsc::channel(wanted.max(1) as usize);
    let shared_access = Arc::new(access.clone());
    let handler = Arc::new(CallHandler {
        links: Mutex::new(Some(links)),
        refused: Mutex::default(),
        access: Arc::clone(&shared_access),
    });
    // The server owns the connections, so it runs until the network ends.
    let server = service::serve(
        listener,
        shared_access,
        Arc::clone(&handler) as Arc<dyn Handler>,
        std::future::pending(),
    );
    tokio::spawn(async move {
        // An error shows as missing agents.
        let _ = server.await;
    });
    let mut all = Vec::new();
    let until = tokio::time::Instant::now() + deadline;
    while all.len() < wanted as usize {
        missing.note(&here, format!("{} of {wanted} so far", all.len()));
        let Ok(Some(link)) = tokio::time::timeout_at(until, calls.recv()).await else {
            let refused = lock(&handler.refused);
            let why = match refused.as_str() {
                "" => String::new(),
                reason => format!("; the last caller was refused: {reason}"),
            };
            return Err(AgentsError::aborted(format!(
                "{} of {wanted} agents have called within {} s{why}",
                all.len(),
                deadline.as_secs()
            )));
        };
        let peer = link.peer.clone();
        // A caller without a valid greeting is ignored.
        if let Ok(greeted) = greet(link, access, &peer).await {
            all.push(greeted);
        }
    }
    missing.greeted(&here);
    *lock(&handler.links) = None;
    Ok(all)
}

/// Orders agents by rank. Listed agents and callers with a rank keep theirs; the others fill the gaps.
fn order_by_rank(
    greeted: Vec<GreetedAgent>,
    wanted: usize,
) -> Result<Vec<GreetedAgent>, AgentsError> {
    let mut ranked: BTreeMap<u32, GreetedAgent> = BTreeMap::new();
    let mut others = Vec::new();
    for agent in greeted {
        match agent.listed_rank.or(agent.greeting.rank) {
            Some(at) if (at as usize) < wanted => {
                if let Some(twin) = ranked.insert(at, agent) {
                    return Err(AgentsError::usage(format!(
                        "two agents have rank {at}, one of them on {}; each agent needs its own rank",
                        twin.greeting.host
                    )));
                }
            }
            Some(at) => {
                return Err(AgentsError::usage(format!(
                    "an agent on {} has rank {at}, but only {wanted} agents are expected; correct their number",
                    agent.greeting.host
                )));
            }
            None => others.push(agent),
        }
    }
    for agent in others {
        let free = (0..)
            .find(|at| !ranked.contains_key(at))
            .unwrap_or(u32::MAX);
        ranked.insert(free, agent);
    }
    Ok(ranked.into_values().collect())
}
