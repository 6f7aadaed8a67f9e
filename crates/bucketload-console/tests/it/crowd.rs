//! Clients that take all places and send nothing more.

use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use bucketload_console::server::{MAX_CONNECTIONS, Server};
use bucketload_console::web::{Console, ConsoleConfig, router};
use bucketload_token::AccessToken;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Script, TOKEN, controller, request, site};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
/// Bounds a wait that fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A body that never ends.
struct Endless;

impl futures_core::Stream for Endless {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_has_little_time() {
    let site = site(true);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let began = tokio::time::Instant::now();
    let body = Body::from_stream(Endless);
    let answer = site.ask(request("POST", "/login", &form, body)).await;
    assert_eq!(answer.status, StatusCode::REQUEST_TIMEOUT);
    assert!(began.elapsed() <= Duration::from_secs(15));
    let long = format!("token={}", "x".repeat(8 << 10));
    let answer = site.ask(request("POST", "/login", &form, long)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
}

/// Sends a request and reads the head of the answer.
async fn ask(address: std::net::SocketAddr, text: String) -> std::io::Result<(TcpStream, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(text.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut answer).await? == 0 {
            break;
        }
    }
    Ok((stream, String::from_utf8_lossy(&answer).into_owned()))
}

#[tokio::test]
async fn slow_logins_do_not_lock_anybody_out() {
    let dir = tempfile::tempdir().unwrap();
    let controller = controller(dir.path(), &Script::new(false));
    let config = ConsoleConfig {
        token: Some(AccessToken::parse("", TOKEN).unwrap()),
        ..ConsoleConfig::default()
    };
    let console = Console::new(controller.clone(), config).unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
    let address = server.address().unwrap();
    tokio::spawn(server.serve(router(console), controller.stopping()));
    let head =
        |line: &str, more: &str| format!("{line} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n\r\n");
    // A client that knows the token, and watches.
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let (mut watcher, answer) = ask(address, head("GET /events", &bearer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let slow = head("POST /login", &format!("{FORM}\r\nContent-Length: 100")) + "token=";
    let mut crowd = Vec::new();
    for _ in 0..2 * MAX_CONNECTIONS {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may have closed the connection for a later one already.
        let _ = stream.write_all(slow.as_bytes()).await;
        crowd.push(stream);
    }
    let body = format!("token={TOKEN}");
    let login = head(
        "POST /login",
        &format!("{FORM}\r\nContent-Length: {}", body.len()),
    ) + &body;
    let began = Instant::now();
    let (_, answer) = tokio::time::timeout(PATIENCE, ask(address, login))
        .await
        .unwrap()
        .unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 303"),
        "{answer} {:?}",
        began.elapsed()
    );
    // The known client kept its place.
    let mut byte = [0; 1];
    let open = tokio::time::timeout(Duration::ZERO, watcher.read(&mut byte)).await;
    assert!(!matches!(open, Ok(Ok(0) | Err(_))), "{open:?}");
    controller.stop();
}
