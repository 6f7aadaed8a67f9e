//! Access control of agents, seen from the network.

use std::sync::Arc;
use std::time::Duration;

use bucketload_agents::{
    Access, AgentOptions, Assignment, Conductor, Executor, Fleet, GatherOptions, Problem, Tls,
    TlsFiles, listen, probe_async,
};
use bucketload_token::AccessToken;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

const WAIT: Duration = Duration::from_secs(20);

/// Does nothing.
struct Idle;

impl Executor for Idle {
    fn execute(&self, _: Assignment, _: &mut Conductor) -> Result<(), Problem> {
        Ok(())
    }
}

/// Starts an agent in this process and returns its address.
async fn agent(access: Access) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let options = AgentOptions {
        access,
        rank: None,
        executor: Arc::new(Idle),
        say: Arc::new(|_| ()),
    };
    tokio::spawn(async move {
        listen(options, listener, false, std::future::pending())
            .await
            .unwrap();
    });
    address
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn access(version: &str, token: &str) -> Access {
    Access::new(version, Some(AccessToken::parse("", token).unwrap()), None)
}

#[test]
fn token_and_version_are_checked() {
    runtime().block_on(async {
        let right = access("1.2.3", "the-right-token-01");
        let address = agent(right.clone()).await;
        let found = probe_async(&address, &right, WAIT).await.unwrap();
        // Both sides share one clock, so the bound must cover the measured offset.
        assert!(found.clock.offset_ns.unsigned_abs() <= found.clock.bound_ns);
        assert!(found.round_trip > Duration::ZERO && found.round_trip < WAIT);
        let answer = found.answer;
        assert_eq!((answer.version.as_str(), answer.busy), ("1.2.3", None));
        assert_eq!(answer.pid, std::process::id());
        let wrong = access("1.2.3", "the-wrong-token-01");
        let refused = probe_async(&address, &wrong, WAIT).await.unwrap_err();
        assert!(refused.message.contains("token"), "{refused}");
        assert!(!refused.message.contains("1.2.3"), "{refused}");
        let newer = access("1.3.0", "the-right-token-01");
        let refused = probe_async(&address, &newer, WAIT).await.unwrap_err();
        for version in ["1.2.3", "1.3.0"] {
            assert!(refused.message.contains(version), "{refused}");
        }
    });
}

#[test]
fn a_coordinator_of_another_version_is_refused_at_once_with_both_named() {
    let runtime = runtime();
    let address = runtime.block_on(agent(access("1.2.3", "the-right-token-01")));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let network = std::thread::spawn(move || runtime.block_on(stopped));
    let gather = |access: Access| {
        Fleet::gather(GatherOptions {
            children: Vec::new(),
            dial: vec![address.clone()],
            listen: None,
            access,
            run_id: "17-ab".to_owned(),
            timeout: Duration::from_secs(10),
            deadline: Duration::from_secs(60),
            say: Arc::new(|_| {}),
        })
    };
    let begun = std::time::Instant::now();
    let refused = gather(access("2.0.0", "the-right-token-01")).err().unwrap();
    assert_eq!(refused.exit_code, 2);
    assert!(
        refused.message.contains("1.2.3") && refused.message.contains("2.0.0"),
        "{refused}"
    );
    let refused = gather(access("1.2.3", "the-wrong-token-01")).err().unwrap();
    assert!(
        refused.exit_code == 2 && refused.message.contains("token"),
        "{refused}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(50),
        "refusals are not retried"
    );
    let fleet = gather(access("1.2.3", "the-right-token-01")).ok().unwrap();
    assert_eq!(fleet.len(), 1);
    assert_eq!(fleet.snapshot().agents[0].pid, std::process::id());
    drop(fleet);
    drop(stop);
    let _ = network.join();
}

#[test]
fn waiting_for_missing_agents_ends() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let lost = Fleet::gather(GatherOptions {
        children: Vec::new(),
        dial: Vec::new(),
        listen: Some((listener, 2)),
        access: Access::new("1", None, None),
        run_id: "17-ab".to_owned(),
        timeout: Duration::from_secs(10),
        deadline: Duration::from_millis(300),
        say: Arc::new(|_| {}),
    });
    let lost = lost.err().unwrap();
    assert_eq!(lost.exit_code, 4);
    assert!(
        lost.message.contains('2') && lost.message.contains("agents"),
        "{lost}"
    );
}

/// Writes certificates of a new authority to `dir`.
fn certificates(dir: &std::path::Path) -> TlsFiles {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    let files = TlsFiles {
        certificate: dir.join("cert.pem"),
        key: dir.join("key.pem"),
        authority: dir.join("ca.pem"),
    };
    std::fs::write(&files.certificate, own.pem()).unwrap();
    std::fs::write(&files.key, key.serialize_pem()).unwrap();
    std::fs::write(&files.authority, authority.pem()).unwrap();
    files
}

#[test]
fn certificates_must_be_of_the_same_authority() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tls = |dir: &std::path::Path| Some(Tls::read(&certificates(dir)).unwrap());
    let access = Access::new("1", None, tls(ours.path()));
    runtime().block_on(async {
        let address = agent(access.clone()).await;
        assert!(probe_async(&address, &access, WAIT).await.is_ok());
        let stranger = Access::new("1", None, tls(theirs.path()));
        assert!(probe_async(&address, &stranger, WAIT).await.is_err());
        let plain = Access::new("1", None, None);
        assert!(probe_async(&address, &plain, WAIT).await.is_err());
    });
}
