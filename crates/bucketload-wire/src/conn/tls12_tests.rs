//! Tests of TLS 1.2, which many storage appliances still use. Its record layer differs from that
//! of TLS 1.3.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Conn;
use crate::error::Error;
use crate::listen::Port;
use crate::sock::Sock;
use crate::tls::{ClientOptions, ClientTls, Pem, ServerTls, server_name};

fn configs() -> (ClientTls, ServerTls) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &ca).unwrap();
    let chain = CertificateDer::pem_slice_iter(certificate.pem().as_bytes())
        .map(Result::unwrap)
        .collect();
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let client = ClientTls::new(&ClientOptions {
        ca_bundle: Some(Pem::Text(ca.pem().into_bytes())),
        ..ClientOptions::default()
    });
    let server = ServerTls {
        config: Arc::new(server),
    };
    (client.unwrap(), server)
}

#[test]
fn data_flows_both_ways_and_sessions_resume() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (client, server) = configs();
    let body: Vec<u8> = (0..1_500_000u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8)
        .collect();
    runtime.block_on(async {
        for attempt in 0..2 {
            let port = Port::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let addr = port.addr();
            let listener = port.listen().unwrap();
            let sock = Sock::connect(addr, None).await.unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            let name = server_name("localhost").unwrap();
            let (a, b) = tokio::join!(
                Conn::connect_tls(sock, &client, &name),
                Conn::accept_tls(accepted, &server)
            );
            let (mut a, mut b) = (a.unwrap(), b.unwrap());
            let facts = a.tls_facts().unwrap();
            assert_eq!(facts.version, "TLSv1_2");
            assert_eq!(facts.resumed, attempt == 1);
            for _ in 0..2 {
                let mut at = 0;
                let sink = |offset: u64, bytes: &[u8]| {
                    assert_eq!(offset, at);
                    assert_eq!(bytes, &body[at as usize..][..bytes.len()]);
                    at += bytes.len() as u64;
                    Ok::<_, Error>(())
                };
                let (sent, received) =
                    tokio::join!(a.send(b"", &body), b.recv_body(body.len() as u64, sink));
                sent.unwrap();
                received.unwrap();
                std::mem::swap(&mut a, &mut b);
            }
            a.close();
            let ended = b.discard(1).await;
            assert!(
                matches!(ended, Err(Error::Closed { clean: true })),
                "{ended:?}"
            );
        }
    });
}
