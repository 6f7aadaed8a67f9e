//! The server over TLS.

use bucketload_server::Server;
use bucketload_wire::tls::{ClientOptions, ClientTls, Identity, Pem, ServerOptions, server_name};
use bucketload_wire::{Conn, Error, Sock, Step, http};

use super::client::{KEY, SECRET, config, memory, req};
use super::signer::Signer;

async fn exchange(conn: &mut Conn, bytes: &[u8]) -> Result<(u16, Vec<u8>), Error> {
    conn.send(bytes, b"").await?;
    conn.recv_with(|bytes| {
        let Some(head) = http::parse_response(bytes, false)? else {
            return Ok(Step::More(0));
        };
        let end = head.len + head.body.length().unwrap_or(0) as usize;
        Ok(match bytes.get(head.len..end) {
            Some(body) => Step::Done(end, (head.status, body.to_vec())),
            None => Step::More(0),
        })
    })
    .await
}

#[test]
fn requests_over_tls() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = Pem::Text(made.cert.pem().into_bytes());
    let identity = Identity {
        certificates: certificate.clone(),
        key: Pem::Text(made.signing_key.serialize_pem().into_bytes()),
    };
    let mut sealed = config();
    sealed.tls = Some(ServerOptions {
        identity,
        client_ca: None,
    });
    let store = memory();
    store.create_bucket("bucket").unwrap();
    let server = Server::start(sealed, store).unwrap();
    assert!(server.endpoint_url().starts_with("https://127.0.0.1:"));
    let trusted = ClientOptions {
        ca_bundle: Some(certificate),
        ..ClientOptions::default()
    };
    let tls = ClientTls::new(&trusted).unwrap();
    let signer = Signer::new(KEY, SECRET);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let sock = Sock::connect(server.address(), None).await.unwrap();
        let name = server_name("localhost").unwrap();
        let mut conn = Conn::connect_tls(sock, &tls, &name).await.unwrap();
        let body = vec![5; 50_000];
        let put = req("PUT", "/bucket/k").body(&body).render(&signer);
        assert_eq!(exchange(&mut conn, &put).await.unwrap().0, 200);
        let get = req("GET", "/bucket/k").render(&signer);
        assert_eq!(exchange(&mut conn, &get).await.unwrap(), (200, body));
    });
    // A plain-text request gets no response and does no harm.
    let mut plain = super::client::Client::new(&server);
    std::io::Write::write_all(&mut plain.stream, b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_ne!(plain.try_receive(false).unwrap_err().status, 200);
    let mut broken = config();
    let missing = Pem::File("/nonexistent.pem".into());
    let identity = Identity {
        certificates: missing.clone(),
        key: missing,
    };
    broken.tls = Some(ServerOptions {
        identity,
        client_ca: None,
    });
    let error = Server::start(broken, memory()).unwrap_err().to_string();
    assert!(error.contains("/nonexistent.pem"), "{error}");
}
