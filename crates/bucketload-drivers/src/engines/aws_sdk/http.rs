//! The SDK's HTTP client in a wrapper that counts and times every request.

use std::cell::RefCell;

use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::{
    RuntimeComponents, RuntimeComponentsBuilder,
};
use aws_smithy_types::config_bag::ConfigBag;
use bucketload_core::error::{ErrorKind, OpError, OpResult};

use crate::engines::per_thread::{EngineId, Slot, of_this_thread};
use crate::engines::shared_probe::SharedProbe;

thread_local! {
    static THREAD_CLIENT: Slot<SharedHttpClient> = const { RefCell::new(None) };
}

/// The HTTP client of a thread, watched for one worker.
#[derive(Debug)]
pub(super) struct Watched {
    inner: SharedHttpClient,
    shared_probe: SharedProbe,
}

impl Watched {
    /// The client that the workers of this thread share.
    ///
    /// # Errors
    /// When the certificates cannot be used.
    pub(super) fn of_this_thread(
        engine: EngineId,
        trusted: Option<&[u8]>,
        shared_probe: SharedProbe,
    ) -> OpResult<Self> {
        let inner = THREAD_CLIENT.with(|slot| of_this_thread(slot, engine, || client(trusted)))?;
        Ok(Self {
            inner,
            shared_probe,
        })
    }
}

fn client(trusted: Option<&[u8]>) -> OpResult<SharedHttpClient> {
    let builder = Builder::new().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
    let Some(pem) = trusted else {
        return Ok(builder.build_https());
    };
    let store = TrustStore::empty().with_pem_certificate(pem);
    let context = TlsContext::builder().with_trust_store(store).build();
    let context = context.map_err(|e| OpError::new(ErrorKind::Tls, e.to_string()))?;
    Ok(builder.tls_context(context).build_https())
}

impl HttpClient for Watched {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(WatchedConnector {
            inner: self.inner.http_connector(settings, components),
            shared_probe: self.shared_probe.clone(),
        })
    }

    fn validate_base_client_config(
        &self,
        components: &RuntimeComponentsBuilder,
        config: &ConfigBag,
    ) -> Result<(), BoxError> {
        HttpClient::validate_base_client_config(&self.inner, components, config)
    }

    fn validate_final_config(
        &self,
        components: &RuntimeComponents,
        config: &ConfigBag,
    ) -> Result<(), BoxError> {
        HttpClient::validate_final_config(&self.inner, components, config)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.inner.connector_metadata()
    }
}

#[derive(Debug)]
struct WatchedConnector {
    inner: SharedHttpConnector,
    shared_probe: SharedProbe,
}

impl HttpConnector for WatchedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.shared_probe.started();
        let answer = self.inner.call(request);
        let shared_probe = self.shared_probe.clone();
        HttpConnectorFuture::new(async move {
            let response = answer.await?;
            let headers = response.headers();
            shared_probe.answered(response.status().as_u16(), |name| {
                headers.get(name).map(str::as_bytes)
            });
            Ok(response)
        })
    }
}
