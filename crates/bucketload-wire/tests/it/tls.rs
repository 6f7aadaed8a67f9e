//! TLS over loopback, with certificates generated for each test.

use crate::common::{an_early_answer_is_noticed, bodies_arrive, line, push_random, run, sockets};
use bucketload_wire::tls::{
    ClientOptions, ClientTls, ConfigError, Identity, Pem, ServerOptions, ServerTls, TlsError,
    server_name,
};
use bucketload_wire::{Conn, Error};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

/// A certificate authority.
struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn pem(&self) -> Pem {
        Pem::Text(self.0.pem().into_bytes())
    }

    fn issue(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().unwrap();
        let issuer: &Issuer<'_, _> = &self.0;
        let certificate = params.signed_by(&key, issuer).unwrap();
        Identity {
            certificates: Pem::Text(certificate.pem().into_bytes()),
            key: Pem::Text(key.serialize_pem().into_bytes()),
        }
    }

    fn issue_for(&self, name: &str) -> Identity {
        self.issue(CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    fn trusted(&self) -> ClientOptions {
        ClientOptions {
            ca_bundle: Some(self.pem()),
            ..ClientOptions::default()
        }
    }
}

fn server(identity: Identity) -> ServerTls {
    ServerTls::new(&ServerOptions {
        identity,
        client_ca: None,
    })
    .unwrap()
}

/// Performs a handshake on both ends.
async fn handshake(
    client: &ClientTls,
    server: &ServerTls,
    name: &str,
) -> (Result<Conn, Error>, Result<Conn, Error>) {
    let (sock, accepted) = sockets().await;
    let name = server_name(name).unwrap();
    tokio::join!(
        Conn::connect_tls(sock, client, &name),
        Conn::accept_tls(accepted, server)
    )
}

/// The reason for which a client with `options` refuses a server with `identity`.
async fn refusal(options: &ClientOptions, identity: Identity, name: &str) -> TlsError {
    let client = ClientTls::new(options).unwrap();
    let (client, server) = handshake(&client, &server(identity), name).await;
    // An alert tells the server the reason.
    assert!(matches!(server, Err(Error::Tls(_))), "{server:?}");
    match client {
        Err(Error::Tls(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

async fn pair() -> (Conn, Conn) {
    let ca = Ca::new("ca");
    let client = ClientTls::new(&ca.trusted()).unwrap();
    let server = server(ca.issue_for("localhost"));
    let (client, server) = handshake(&client, &server, "localhost").await;
    (client.unwrap(), server.unwrap())
}

#[test]
fn bodies_of_all_sizes_arrive_whole() {
    const MARK: usize = 1 << 20;
    let mut sizes = vec![0, 1, 16_383, 16_384, 16_385, 65_536, 65_537];
    for marks in 1..=3 {
        for near in [-16_385_i64, -16_384, -1, 0, 1, 16_384, 40_000] {
            sizes.push((MARK as i64 * marks + near) as usize);
        }
    }
    push_random(&mut sizes, 20, 7);
    run(async {
        let (a, b) = pair().await;
        bodies_arrive(a, b, &sizes, [262_144, 9_999]).await;
    });
}

#[test]
fn a_small_exchange_costs_one_send_and_one_receive() {
    run(async {
        let (mut a, mut b) = pair().await;
        let server = tokio::task::spawn_local(async move {
            while line(&mut b).await.is_ok() {
                b.send(b"answer\n", b"").await.unwrap();
            }
        });
        let exchange = async |a: &mut Conn| {
            a.send(b"GET\n", b"").await.unwrap();
            assert_eq!(line(a).await.unwrap(), "answer");
        };
        exchange(&mut a).await;
        let before = a.calls();
        for _ in 0..200 {
            exchange(&mut a).await;
        }
        let after = a.calls();
        assert_eq!(after.send - before.send, 200);
        assert!(after.recv - before.recv <= 205, "{after:?}");
        drop(a);
        server.await.unwrap();
    });
}

#[test]
fn each_certificate_problem_has_its_own_error() {
    run(async {
        let ca = Ca::new("ca");
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        let expired = refusal(&ca.trusted(), ca.issue(params.clone()), "localhost").await;
        assert!(matches!(expired, TlsError::Expired(_)), "{expired:?}");

        params.not_before = date_time_ymd(2090, 1, 1);
        params.not_after = date_time_ymd(2091, 1, 1);
        let early = refusal(&ca.trusted(), ca.issue(params), "localhost").await;
        assert!(matches!(early, TlsError::NotYetValid(_)), "{early:?}");

        let other = Ca::new("other").trusted();
        let unknown = refusal(&other, ca.issue_for("localhost"), "localhost").await;
        assert_eq!(unknown, TlsError::UnknownIssuer);

        let wrong = refusal(&ca.trusted(), ca.issue_for("a.example"), "b.example").await;
        assert!(
            matches!(&wrong, TlsError::NameMismatch(text)
            if text.contains("a.example") && text.contains("b.example")),
            "{wrong:?}"
        );

        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = refusal(&ca.trusted(), ca.issue(params), "localhost").await;
        assert!(
            matches!(&authority, TlsError::BadCertificate(text)
            if text.contains("CA certificate")),
            "{authority:?}"
        );
    });
}

#[test]
fn insecure_accepts_what_verification_refuses() {
    run(async {
        let (ca, options) = (
            Ca::new("ca"),
            ClientOptions {
                insecure: true,
                ..ClientOptions::default()
            },
        );
        let client = ClientTls::new(&options).unwrap();
        let server = server(ca.issue_for("a.example"));
        let (client, server) = handshake(&client, &server, "b.example").await;
        let (mut client, mut server) = (client.unwrap(), server.unwrap());
        client.send(b"hello\n", b"").await.unwrap();
        assert_eq!(line(&mut server).await.unwrap(), "hello");
    });
}

#[test]
fn addresses_can_be_verified() {
    run(async {
        let ca = Ca::new("ca");
        let client = ClientTls::new(&ca.trusted()).unwrap();
        for (san, name) in [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")] {
            let (client, server) = handshake(&client, &server(ca.issue_for(san)), name).await;
            client.unwrap();
            server.unwrap();
        }
        let wrong = refusal(&ca.trusted(), ca.issue_for("127.0.0.2"), "127.0.0.1").await;
        assert!(matches!(wrong, TlsError::NameMismatch(_)), "{wrong:?}");
        assert!(matches!(
            server_name("a b"),
            Err(ConfigError::BadName { .. })
        ));
    });
}

#[test]
fn client_certificates_are_required_and_checked() {
    run(async {
        let (ca, clients) = (Ca::new("ca"), Ca::new("clients"));
        let server = ServerTls::new(&ServerOptions {
            identity: ca.issue_for("localhost"),
            client_ca: Some(clients.pem()),
        })
        .unwrap();
        let with = |identity: Option<Identity>| {
            let options = ClientOptions {
                identity,
                ..ca.trusted()
            };
            ClientTls::new(&options).unwrap()
        };

        let good = with(Some(clients.issue_for("client")));
        let (client, accepted) = handshake(&good, &server, "localhost").await;
        let (mut client, mut accepted) = (client.unwrap(), accepted.unwrap());
        accepted.send(b"welcome\n", b"").await.unwrap();
        assert_eq!(line(&mut client).await.unwrap(), "welcome");

        // With TLS 1.3 a client learns of the refusal when it first receives.
        for (bad, want) in [
            (None, "demands one"),
            (Some(Ca::new("foreign").issue_for("client")), "issuer"),
        ] {
            let (client, accepted) = handshake(&with(bad), &server, "localhost").await;
            assert!(matches!(accepted, Err(Error::Tls(_))), "{accepted:?}");
            let refused = line(&mut client.unwrap()).await;
            assert!(
                matches!(&refused, Err(Error::Tls(TlsError::CertificateRefused(text)))
                    if text.contains(want)),
                "{refused:?}"
            );
        }
    });
}

#[test]
fn sessions_are_resumed_if_enabled() {
    run(async {
        let ca = Ca::new("ca");
        let server = server(ca.issue_for("localhost"));
        for resumption in [true, false] {
            let options = ClientOptions {
                resumption,
                ..ca.trusted()
            };
            let client = ClientTls::new(&options).unwrap();
            for attempt in 0..2 {
                let (a, b) = handshake(&client, &server, "localhost").await;
                let (mut a, mut b) = (a.unwrap(), b.unwrap());
                // The ticket arrives with the first answer.
                b.send(b"hello\n", b"").await.unwrap();
                assert_eq!(line(&mut a).await.unwrap(), "hello");
                let facts = a.tls_facts().unwrap();
                assert_eq!(facts.resumed, resumption && attempt == 1);
                assert_eq!(facts.version, "TLSv1_3");
                assert!(facts.cipher.contains("AES"), "{facts:?}");
            }
        }
    });
}

#[test]
fn a_truncated_stream_differs_from_a_closed_one() {
    run(async {
        for orderly in [true, false] {
            let (mut a, mut b) = pair().await;
            b.send(b"half", b"").await.unwrap();
            if orderly {
                b.close();
            } else {
                drop(b);
            }
            let ended = line(&mut a).await;
            assert!(
                matches!(ended, Err(Error::Closed { clean }) if clean == orderly),
                "{ended:?}"
            );
        }
    });
}

#[test]
fn a_peer_that_answers_instead_of_reading_is_noticed() {
    run(async {
        let (a, b) = pair().await;
        an_early_answer_is_noticed(a, b).await;
    });
}

#[test]
fn peers_that_do_not_speak_tls_are_recognised() {
    run(async {
        let (plain, peer) = sockets().await;
        let mut peer = Conn::plain(peer);
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n", b"")
            .await
            .unwrap();
        let client = ClientTls::new(&Ca::new("ca").trusted()).unwrap();
        let name = server_name("localhost").unwrap();
        let failed = Conn::connect_tls(plain, &client, &name).await;
        assert!(
            matches!(failed, Err(Error::Tls(TlsError::NotTls))),
            "{failed:?}"
        );

        let (plain, peer) = sockets().await;
        drop(peer);
        let failed = Conn::connect_tls(plain, &client, &name).await;
        assert!(
            matches!(failed, Err(Error::Tls(TlsError::ClosedInHandshake))),
            "{failed:?}"
        );
    });
}

#[test]
fn unusable_files_are_named_without_their_contents() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        Pem::File(path)
    };
    let missing = Pem::File(dir.path().join("missing.pem"));
    let trusting = |ca_bundle: Pem| {
        let options = ClientOptions {
            ca_bundle: Some(ca_bundle),
            ..ClientOptions::default()
        };
        ClientTls::new(&options).unwrap_err().to_string()
    };
    let text = trusting(missing);
    assert!(
        text.contains("missing.pem") && text.contains("No such file"),
        "{text}"
    );
    let text = trusting(write("empty.pem", b"nothing"));
    assert!(
        text.contains("empty.pem") && text.contains("BEGIN CERTIFICATE"),
        "{text}"
    );

    let ca = Ca::new("ca");
    let (one, two) = (ca.issue_for("localhost"), ca.issue_for("localhost"));
    let serving = |certificates: Pem, key: Pem| {
        let identity = Identity { certificates, key };
        let options = ServerOptions {
            identity,
            client_ca: None,
        };
        ServerTls::new(&options).unwrap_err().to_string()
    };
    let secret = b"-----BEGIN PRIVATE KEY-----\nsecret!\n-----END PRIVATE KEY-----\n";
    let text = serving(one.certificates.clone(), write("bad.key", secret));
    assert!(
        text.contains("bad.key") && !text.contains("secret!"),
        "{text}"
    );
    let text = serving(one.certificates.clone(), two.key);
    assert!(text.contains("cannot be used together"), "{text}");
    assert!(!format!("{one:?}").contains("BEGIN"), "{one:?}");
}
