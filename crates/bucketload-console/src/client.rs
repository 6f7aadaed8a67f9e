//! Client of a controller, for `bucketload submit`, `info`, `cancel` and `top --controller`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bucketload_token::AccessToken;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::web::api::{JobInfo, LiveInfo};

/// Time limit of a request: the controller may check a workload for up to a minute.
const LIMIT: Duration = Duration::from_secs(150);
/// Maximum size of an answer, bytes.
const MAX_ANSWER: usize = 64 << 20;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The URL or a certificate file is wrong.
    #[error("{0}")]
    Usage(String),
    /// The controller refused the request.
    #[error("{0}")]
    Refused(String),
    /// The controller cannot be reached.
    #[error("{0}")]
    Unreachable(String),
}

/// A client of one controller. Each request uses a new connection.
pub struct Client {
    host: String,
    port: u16,
    authority: String,
    tls: Option<TlsConnector>,
    token: Option<AccessToken>,
    runtime: tokio::runtime::Runtime,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("authority", &self.authority)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Makes a client of the controller at `url`, for example `http://127.0.0.1:19088`. Server certificates are verified
    /// against the system's authorities, or those in the PEM file `ca`.
    ///
    /// # Errors
    /// When the URL or the file is wrong.
    pub fn new(
        url: &str,
        token: Option<AccessToken>,
        ca: Option<&Path>,
    ) -> Result<Self, ClientError> {
        let wrong = || {
            ClientError::Usage(format!(
                "--controller {url}: not a URL; write for example http://127.0.0.1:19088"
            ))
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?.to_owned();
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?.as_str().to_owned();
        if authority.contains('@') || uri.path() != "/" || uri.query().is_some() {
            return Err(ClientError::Usage(
                "--controller: write the URL without user, path and query; a token belongs in --token-file or BUCKETLOAD_TOKEN"
                    .to_owned(),
            ));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| ClientError::Unreachable(e.to_string()))?;
        Ok(Self {
            port: uri.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            host: host.trim_matches(['[', ']']).to_owned(),
            authority,
            tls: secure.then(|| connector(ca)).transpose()?,
            token,
            runtime,
        })
    }

    /// Submits a workload file, or a built-in workload by name, with options of `bucketload run`.
    ///
    /// # Errors
    /// When the controller refuses it, with the reason.
    pub fn submit(
        &self,
        file: Option<(&str, &[u8])>,
        builtin: Option<&str>,
        options: &[(String, String)],
    ) -> Result<JobInfo, ClientError> {
        let mut fields: Vec<(&str, &str)> = options
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        fields.extend(builtin.map(|name| ("builtin", name)));
        let (kind, body) = multipart(&fields, file);
        self.json(Method::POST, "/api/jobs", Some((kind, body)))
    }

    /// Returns all jobs: the running one, those that wait, and those that have ended.
    ///
    /// # Errors
    /// When the controller does not answer or refuses.
    pub fn jobs(&self) -> Result<Vec<JobInfo>, ClientError> {
        self.json(Method::GET, "/api/jobs", None)
    }

    /// Returns one job.
    ///
    /// # Errors
    /// As [`Client::jobs`]; also when there is no such job.
    pub fn job(&self, id: &str) -> Result<JobInfo, ClientError> {
        self.json(Method::GET, &format!("/api/jobs/{}", checked_id(id)?), None)
    }

    /// Cancels a job.
    ///
    /// # Errors
    /// As [`Client::job`]; also when it has ended.
    pub fn cancel(&self, id: &str) -> Result<JobInfo, ClientError> {
        let path = format!("/api/jobs/{}/cancel", checked_id(id)?);
        self.json(Method::POST, &path, None)
    }

    /// Returns the current run, with the points of a phase.
    ///
    /// # Errors
    /// As [`Client::jobs`].
    pub fn live(&self, phase: Option<usize>) -> Result<LiveInfo, ClientError> {
        let path = match phase {
            Some(phase) => format!("/api/live?phase={phase}"),
            None => "/api/live".to_owned(),
        };
        self.json(Method::GET, &path, None)
    }

    fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<(String, Vec<u8>)>,
    ) -> Result<T, ClientError> {
        let request = async {
            tokio::time::timeout(LIMIT, self.request(method, path, body))
                .await
                .unwrap_or_else(|_| Err(format!("no answer within {} s", LIMIT.as_secs())))
        };
        let (status, answer) = self
            .runtime
            .block_on(request)
            .map_err(|e| ClientError::Unreachable(format!(
                "controller {}: {e}\n  help: `bucketload controller` starts one; --controller URL names another",
                self.authority
            )))?;
        if status == StatusCode::UNAUTHORIZED {
            return Err(ClientError::Refused(format!(
                "the controller {} requires a token: --token-file FILE or the environment variable BUCKETLOAD_TOKEN",
                self.authority
            )));
        }
        if !status.is_success() {
            let text = String::from_utf8_lossy(&answer).into_owned();
            let problem: Option<serde_json::Value> = serde_json::from_slice(&answer).ok();
            let reason = problem
                .as_ref()
                .and_then(|problem| problem["error"].as_str())
                .unwrap_or_else(|| text.trim());
            return Err(ClientError::Refused(reason.to_owned()));
        }
        serde_json::from_slice(&answer).map_err(|e| {
            ClientError::Unreachable(format!(
                "controller {}: the answer is not from a controller ({e})",
                self.authority
            ))
        })
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<(String, Vec<u8>)>,
    ) -> Result<(StatusCode, Bytes), String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|e| e.to_string())?;
        let (kind, body) = body.unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.authority)
            .header("accept", "application/json")
            .header("connection", "close");
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {}", token.expose()));
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|e| e.to_string())?;
        match &self.tls {
            None => exchange(stream, request).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(|e| e.to_string())?;
                let stream = tls.connect(name, stream).await.map_err(|e| e.to_string())?;
                exchange(stream, request).await
            }
        }
    }
}

async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| e.to_string())?;
    let exchange = async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|e| e.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER)
            .collect()
            .await
            .map_err(|e| e.to_string())?;
        Ok((status, body.to_bytes()))
    };
    tokio::pin!(exchange);
    tokio::pin!(connection);
    tokio::select! {
        answer = &mut exchange => answer,
        // The connection may end before its last bytes have been handled.
        _ = &mut connection => exchange.await,
    }
}

fn connector(ca: Option<&Path>) -> Result<TlsConnector, ClientError> {
    let mut roots = rustls::RootCertStore::empty();
    match ca {
        Some(path) => {
            let at = |e: String| ClientError::Usage(format!("--ca-bundle {}: {e}", path.display()));
            let certs = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|e| at(e.to_string()))?;
            for cert in certs {
                roots.add(cert).map_err(|e| at(e.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| ClientError::Usage(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Checks that an identifier is safe in a path.
fn checked_id(id: &str) -> Result<&str, ClientError> {
    if !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric()) {
        Ok(id)
    } else {
        Err(ClientError::Usage(format!(
            "`{id}` is not a workload id; ids are w1, w2, …"
        )))
    }
}

/// Encodes a form; returns its content type and body.
fn multipart(fields: &[(&str, &str)], file: Option<(&str, &[u8])>) -> (String, Vec<u8>) {
    let occurs = |boundary: &str| {
        file.is_some_and(|(_, bytes)| {
            bytes
                .windows(boundary.len())
                .any(|window| window == boundary.as_bytes())
        }) || fields.iter().any(|(_, value)| value.contains(boundary))
    };
    let mut boundary = "bucketload-part".to_owned();
    while occurs(&boundary) {
        boundary.push('x');
    }
    let mut body = Vec::new();
    let mut part = |head: String, bytes: &[u8]| {
        body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    };
    for (name, value) in fields {
        part(
            format!("Content-Disposition: form-data; name=\"{name}\""),
            value.as_bytes(),
        );
    }
    if let Some((name, bytes)) = file {
        let name = name.replace(['"', '\r', '\n', '\\'], "_");
        part(
            format!(
                "Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: application/octet-stream"
            ),
            bytes,
        );
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

#[cfg(test)]
mod tests {
    use super::{Client, ClientError, checked_id, multipart};

    #[test]
    fn urls_have_no_secrets() {
        for bad in [
            "127.0.0.1:19088",
            "ftp://h",
            "http://u:p@h",
            "http://h/path",
            "http://h/?token=x",
            "",
        ] {
            assert!(
                matches!(Client::new(bad, None, None), Err(ClientError::Usage(_))),
                "{bad}"
            );
        }
        let client = Client::new("https://[::1]", None, None).unwrap();
        assert_eq!((client.host.as_str(), client.port), ("::1", 443));
        assert!(checked_id("w1").is_ok() && checked_id("../x").is_err() && checked_id("").is_err());
    }

    #[test]
    fn a_form_survives_its_own_boundary() {
        let (kind, body) = multipart(&[("a", "--bucketload-part")], Some(("f\"\r\n", b"x")));
        assert!(kind.ends_with("boundary=bucketload-partx"));
        let text = String::from_utf8(body).unwrap();
        assert!(text.contains("filename=\"f___\""), "{text}");
        assert!(text.ends_with("--bucketload-partx--\r\n"));
    }
}
