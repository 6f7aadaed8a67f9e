//! The checks that every request must pass first:
//!
//! 1. The `Host` header names this console. In a DNS rebinding attack, a page of another site whose name resolves to
//!    this address still sends its own name.
//! 2. The request carries the token or belongs to a session, if a token is required.
//! 3. A request that changes something comes from this site, not from another one. (Forms also carry a CSRF token;
//!    their handlers check it with `Caller::allows_change`.)
//!
//! A request without a token may only log in, and has little time for that ([`UNKNOWN_LIMIT`]).
//!
//! Every response gets headers that keep browsers from doing more with it than showing it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Redirect, Response};

use super::Console;
use crate::auth::Caller;
use crate::connections::Peer;

/// Time limit of a request that changes something, including its body. A workload check takes up to a minute.
const LIMIT: Duration = Duration::from_secs(150);

/// Time limit of a request of an unknown client, including its body: a login form has a few hundred bytes.
const UNKNOWN_LIMIT: Duration = Duration::from_secs(10);

/// What pages may load: style, scripts, events and frames of this console, nothing inline.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'; object-src 'none'";

/// Passes a request on, or rejects it.
pub(super) async fn guard(
    State(console): State<Arc<Console>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Arc<Peer>>().cloned();
    let response = match pass(&console, &mut request) {
        Err(response) => response,
        Ok(()) => {
            let known = request.extensions().get::<Caller>().is_some();
            let closed = console.auth.is_closed();
            let note_known = || {
                if let Some(peer) = peer.as_ref().filter(|_| known) {
                    peer.set_known();
                }
            };
            // A token identifies a client at once. Without one, anybody may connect, and a complete request does.
            if closed {
                note_known();
            }
            let answer = answer(request, next, known).await;
            note_known();
            answer
        }
    };
    with_headers(response)
}

/// Performs a request within its time limit.
async fn answer(request: Request, next: Next, known: bool) -> Response {
    let limit = match known {
        // Events have no end, and files may be large.
        true if is_safe(request.method()) => return next.run(request).await,
        true => LIMIT,
        false => UNKNOWN_LIMIT,
    };
    tokio::time::timeout(limit, next.run(request))
        .await
        .unwrap_or_else(|_| {
            let close = [(CONNECTION, "close")];
            let text = plain(StatusCode::REQUEST_TIMEOUT, "the request took too long");
            (close, text).into_response()
        })
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// A short text response.
pub(super) fn plain(status: StatusCode, text: &str) -> Response {
    (status, format!("{text}\n")).into_response()
}

fn pass(console: &Console, request: &mut Request) -> Result<(), Response> {
    let headers = request.headers();
    let host = match host(headers, &console.config.hosts) {
        Ok(host) => host,
        Err(text) => return Err(plain(StatusCode::MISDIRECTED_REQUEST, text)),
    };
    if !is_safe(request.method()) && !same_site(headers, host, console.config.tls) {
        return Err(plain(
            StatusCode::FORBIDDEN,
            "this request comes from another site",
        ));
    }
    let path = request.uri().path();
    let open = matches!(path, "/login" | "/assets/console.css" | "/assets/icon.svg");
    let who = console.auth.caller(headers, console.controller.now_ms());
    // COSBench's cli.sh cannot set headers; it puts user and password into the query.
    let who = who.or_else(|| {
        (path.starts_with("/controller/cli/") && query_password(console, request))
            .then_some(Caller::Program)
    });
    match who {
        Some(who) => {
            request.extensions_mut().insert(who);
            Ok(())
        }
        None if open => Ok(()),
        None if request.method() == Method::GET && wants_page(headers) => {
            Err(Redirect::to("/login").into_response())
        }
        None => Err((
            StatusCode::UNAUTHORIZED,
            [(WWW_AUTHENTICATE, "Bearer")],
            "a token is needed: Authorization: Bearer …\n",
        )
            .into_response()),
    }
}

fn query_password(console: &Console, request: &Request) -> bool {
    let query = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    query.is_ok_and(|query| {
        query
            .iter()
            .any(|(name, value)| name == "password" && console.auth.accepts(value))
    })
}

/// Whether the client asks for a page.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    headers
        .get("accept")
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.contains("text/html"))
}

/// Returns the value of `Host` if it is an IP address, `localhost` or a configured name.
fn host<'a>(headers: &'a HeaderMap, names: &[String]) -> Result<&'a str, &'static str> {
    let mut given = headers.get_all(HOST).iter();
    let (Some(host), None) = (given.next(), given.next()) else {
        return Err("the request needs one Host header");
    };
    let host = host
        .to_str()
        .map_err(|_| "the Host header is not readable")?;
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let known = name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| known.eq_ignore_ascii_case(name));
    if known {
        Ok(host)
    } else {
        Err("this host name is not accepted; start the controller with --host NAME to accept it")
    }
}

/// Whether the request comes from a page of this console, or not from a browser.
fn same_site(headers: &HeaderMap, host: &str, tls: bool) -> bool {
    let site = headers.get("sec-fetch-site");
    if site.is_some_and(|site| site != "same-origin" && site != "none") {
        return false;
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => true,
        (Some(origin), None) => {
            let scheme = if tls { "https" } else { "http" };
            origin
                .to_str()
                .is_ok_and(|origin| origin.eq_ignore_ascii_case(&format!("{scheme}://{host}")))
        }
        _ => false,
    }
}

/// Adds the security headers that a response does not set itself.
fn with_headers(mut response: Response) -> Response {
    let defaults: [(HeaderName, &'static str); 7] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    let headers = response.headers_mut();
    for (name, value) in defaults {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    use super::{host, same_site};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn other_host_names_are_rejected() {
        let names = ["bench.example".to_owned()];
        for good in [
            "127.0.0.1:19088",
            "localhost",
            "LOCALHOST:1",
            "[::1]:19088",
            "10.1.2.3",
            "Bench.Example:443",
        ] {
            assert_eq!(host(&headers(&[("host", good)]), &names), Ok(good));
        }
        for bad in [
            "evil.example",
            "evil.example:19088",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "x@127.0.0.1",
            "[evil.example]:1",
        ] {
            assert!(host(&headers(&[("host", bad)]), &names).is_err(), "{bad}");
        }
        assert!(host(&headers(&[]), &names).is_err());
        let mut twice = headers(&[("host", "localhost")]);
        twice.append("host", HeaderValue::from_static("localhost"));
        assert!(host(&twice, &names).is_err());
    }

    #[test]
    fn other_sites_are_recognised() {
        let at = |pairs: &[(&'static str, &str)]| same_site(&headers(pairs), "h:1", false);
        assert!(at(&[]), "not a browser");
        assert!(at(&[
            ("origin", "http://h:1"),
            ("sec-fetch-site", "same-origin")
        ]));
        assert!(at(&[("sec-fetch-site", "none")]));
        for bad in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "https://h:1"),
            ("origin", "http://h:2"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(!at(&[bad]), "{bad:?}");
        }
        assert!(!at(&[
            ("origin", "http://h:1"),
            ("sec-fetch-site", "cross-site")
        ]));
    }
}
