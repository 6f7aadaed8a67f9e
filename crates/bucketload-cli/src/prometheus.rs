//! The metrics endpoint of a run (`--prometheus ADDRESS`): a thread that answers scrapes with the text of the latest
//! interval. It never touches a load thread.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bucketload_token::same;

/// The page that answers scrapes.
pub(crate) type Page = Arc<Mutex<String>>;

/// Environment variable with the bearer token that scrapes must present.
pub(crate) const TOKEN_ENV: &str = "BUCKETLOAD_TOKEN";

/// Starts to answer scrapes at `address`; returns the bound address and the page to fill.
///
/// # Errors
/// When the address is not loopback and no token is set, or cannot be bound.
pub(crate) fn start(address: SocketAddr) -> Result<(SocketAddr, Page), String> {
    let token = std::env::var(TOKEN_ENV)
        .ok()
        .filter(|token| !token.is_empty());
    if !address.ip().is_loopback() && token.is_none() {
        return Err(format!(
            "--prometheus {address}: listening on an address other than loopback needs a bearer token in {TOKEN_ENV}"
        ));
    }
    let at = |e: std::io::Error| format!("--prometheus {address}: {e}");
    let listener = TcpListener::bind(address).map_err(at)?;
    let bound = listener.local_addr().map_err(at)?;
    let page = Page::default();
    let answered = Arc::clone(&page);
    std::thread::Builder::new()
        .name("prometheus".to_owned())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // One scrape at a time is enough; timeouts cut off a stuck client.
                let _ = answer(&stream, token.as_deref(), &answered);
            }
        })
        .map_err(at)?;
    Ok((bound, page))
}

fn answer(stream: &TcpStream, token: Option<&str>, page: &Page) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    let mut reader = BufReader::new(std::io::Read::take(stream, 16 * 1024));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut authorised = token.is_none();
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 && line != "\r\n" {
        if let (Some(token), Some((name, value))) = (token, line.split_once(':')) {
            authorised |= name.eq_ignore_ascii_case("authorization")
                && value
                    .trim()
                    .strip_prefix("Bearer ")
                    .is_some_and(|given| same(given.as_bytes(), token.as_bytes()));
        }
        line.clear();
    }
    let (status, body) = if !authorised {
        (
            "401 Unauthorized",
            "a bearer token is required\n".to_owned(),
        )
    } else if request.starts_with("GET /metrics ") {
        (
            "200 OK",
            page.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        )
    } else {
        ("404 Not Found", "metrics are at /metrics\n".to_owned())
    };
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::{answer, start};

    fn get(address: std::net::SocketAddr, path: &str, header: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn scrapes_get_the_page_and_nothing_else_is_served() {
        let (address, page) = start("127.0.0.1:0".parse().unwrap()).unwrap();
        *page.lock().unwrap() = "bucketload_ops_total 3\n".to_owned();
        assert!(get(address, "/metrics", "").ends_with("\r\n\r\nbucketload_ops_total 3\n"));
        assert!(get(address, "/", "").starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn a_token_is_required_if_one_is_set() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let page = super::Page::default();
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                answer(&listener.accept().unwrap().0, Some("s3cret"), &page).unwrap();
            }
        });
        assert!(get(address, "/metrics", "").starts_with("HTTP/1.1 401"));
        assert!(
            get(address, "/metrics", "Authorization: Bearer s3cret\r\n")
                .starts_with("HTTP/1.1 200")
        );
        server.join().unwrap();
    }

    #[test]
    fn an_open_address_without_a_token_is_refused() {
        assert!(
            start("0.0.0.0:0".parse().unwrap())
                .unwrap_err()
                .contains("BUCKETLOAD_TOKEN")
        );
    }
}
