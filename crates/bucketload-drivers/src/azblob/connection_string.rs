//! Connection strings: `NAME=VALUE` pairs separated by semicolons ("Configure Azure Storage
//! connection strings", Azure Storage documentation). Names are case-insensitive. Names for other
//! services (queues, tables, files) are ignored.

use crate::http::{ConfigError, Endpoint, Secret};

use super::config::Auth;

/// The storage emulator's fixed account ("Use the Azurite emulator", "Well-known storage account
/// and key").
const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
/// The key of that account, which is public.
const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// Where the emulator listens.
const DEVELOPMENT_PROXY: &str = "http://127.0.0.1:10000";

/// A parsed connection string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionString {
    pub(super) endpoint: Endpoint,
    /// Empty when only the endpoint is named.
    pub(super) account: String,
    pub(super) auth: Auth,
}

/// Parses `text`, which was found at `place`.
///
/// # Errors
/// When a part is missing or malformed. The message never shows a value, which may be the key.
pub(super) fn parse(text: &str, place: &str) -> Result<ConnectionString, ConfigError> {
    let fail = |problem: String, remedy: &str| Err(ConfigError::new(place, problem, remedy));
    let mut pairs = Vec::new();
    for (i, part) in text.split(';').enumerate() {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let Some((name, value)) = part.split_once('=') else {
            return fail(
                format!("part {} of the connection string has no `=`", i + 1),
                "write NAME=VALUE;NAME=VALUE, in quotes in a shell",
            );
        };
        pairs.push((name.trim(), value.trim()));
    }
    let get = |name: &str| {
        let mut found = pairs.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        found
            .next()
            .map(|(_, value)| *value)
            .filter(|v| !v.is_empty())
    };
    if get("UseDevelopmentStorage").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
        let proxy = get("DevelopmentStorageProxyUri").unwrap_or(DEVELOPMENT_PROXY);
        let url = match proxy == DEVELOPMENT_PROXY {
            true => format!("{proxy}/{DEVELOPMENT_ACCOUNT}"),
            // The documentation writes `http://myProxyUri`, without a port.
            false if proxy.matches(':').count() < 2 => {
                format!("{proxy}:10000/{DEVELOPMENT_ACCOUNT}")
            }
            false => format!("{}/{DEVELOPMENT_ACCOUNT}", proxy.trim_end_matches('/')),
        };
        return Ok(ConnectionString {
            endpoint: Endpoint::parse(&url, place)?,
            account: DEVELOPMENT_ACCOUNT.to_owned(),
            auth: Auth::SharedKey(DEVELOPMENT_KEY.into()),
        });
    }
    let account = get("AccountName").unwrap_or("");
    let auth = match (get("SharedAccessSignature"), get("AccountKey")) {
        (Some(sas), _) => Auth::Sas(sas_token(sas)),
        (None, Some(key)) if !account.is_empty() => Auth::SharedKey(key.into()),
        (None, Some(_)) => {
            return fail(
                "the connection string has an AccountKey but no AccountName".to_owned(),
                "add AccountName=NAME",
            );
        }
        (None, None) => {
            return fail(
                "the connection string has neither AccountKey nor SharedAccessSignature".to_owned(),
                "copy the whole string; quote it in a shell because of the semicolons",
            );
        }
    };
    let endpoint = match get("BlobEndpoint") {
        Some(url) => Endpoint::parse(url, &format!("{place}, BlobEndpoint"))?,
        None if account.is_empty() => {
            return fail(
                "the connection string has neither AccountName nor BlobEndpoint".to_owned(),
                "add one of them",
            );
        }
        None => {
            let scheme = get("DefaultEndpointsProtocol").unwrap_or("https");
            let suffix = get("EndpointSuffix").unwrap_or("core.windows.net");
            Endpoint::parse(&format!("{scheme}://{account}.blob.{suffix}"), place)?
        }
    };
    Ok(ConnectionString {
        account: match account.is_empty() {
            true => account_of(&endpoint),
            false => account.to_owned(),
        },
        endpoint,
        auth,
    })
}

/// A shared access signature in the form that is appended to a query.
pub(super) fn sas_token(text: &str) -> Secret {
    Secret::new(text.trim().trim_start_matches('?').trim_start_matches('&'))
}

/// The account that an endpoint names: in its path (emulators) or in its first host label. Empty if
/// it names none.
pub(super) fn account_of(endpoint: &Endpoint) -> String {
    let in_path = endpoint.base_path.trim_start_matches('/');
    if !in_path.is_empty() {
        return in_path.split('/').next().unwrap_or("").to_owned();
    }
    match endpoint.host.split_once('.') {
        Some((account, rest)) if rest.starts_with("blob.") => account.to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Auth, account_of, parse};

    fn ok(text: &str) -> (String, String, bool) {
        let parsed = parse(text, "test").unwrap();
        let keyed = matches!(parsed.auth, Auth::SharedKey(_));
        (parsed.endpoint.url(), parsed.account, keyed)
    }

    fn all(url: &str, account: &str, keyed: bool) -> (String, String, bool) {
        (url.to_owned(), account.to_owned(), keyed)
    }

    #[test]
    fn the_documented_forms_are_read() {
        assert_eq!(
            ok(
                "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5==;EndpointSuffix=core.chinacloudapi.cn"
            ),
            all("https://acc.blob.core.chinacloudapi.cn", "acc", true)
        );
        assert_eq!(
            ok("accountname = acc; ACCOUNTKEY=a2V5;"),
            all("https://acc.blob.core.windows.net", "acc", true)
        );
        assert_eq!(
            ok(
                "BlobEndpoint=https://acc.blob.core.windows.net/;QueueEndpoint=https://q/;SharedAccessSignature=?sv=1&sig=x%3D"
            ),
            all("https://acc.blob.core.windows.net", "acc", false)
        );
        assert_eq!(
            ok(
                "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:7/a;"
            ),
            all("http://127.0.0.1:7/a", "a", true)
        );
        assert_eq!(
            ok("UseDevelopmentStorage=true"),
            all(
                "http://127.0.0.1:10000/devstoreaccount1",
                "devstoreaccount1",
                true
            )
        );
        assert_eq!(
            ok("UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://proxy"),
            all(
                "http://proxy:10000/devstoreaccount1",
                "devstoreaccount1",
                true
            )
        );
        // A signature wins over a key.
        assert!(!ok("AccountName=a;AccountKey=a2V5;SharedAccessSignature=sig=x").2);
    }

    #[test]
    fn errors_name_the_missing_part_and_show_no_value() {
        for (text, word) in [
            (
                "AccountName=acc",
                "neither AccountKey nor SharedAccessSignature",
            ),
            ("AccountKey=c2VjcmV0", "no AccountName"),
            (
                "SharedAccessSignature=sig=c2VjcmV0",
                "neither AccountName nor BlobEndpoint",
            ),
            ("AccountName=acc;c2VjcmV0", "part 2"),
            ("", "neither"),
            (
                "AccountName=a;AccountKey=c2VjcmV0;BlobEndpoint=nonsense",
                "BlobEndpoint",
            ),
        ] {
            let error = parse(text, "AZURE_STORAGE_CONNECTION_STRING")
                .unwrap_err()
                .to_string();
            assert!(error.contains(word), "{text}: {error}");
            assert!(!error.contains("c2VjcmV0"), "{error}");
        }
    }

    #[test]
    fn accounts_are_found_in_endpoints() {
        for (url, account) in [
            ("http://127.0.0.1:1/acc", "acc"),
            ("https://acc.blob.core.windows.net", "acc"),
            ("https://storage.example.org", ""),
        ] {
            let endpoint = crate::http::Endpoint::parse(url, "test").unwrap();
            assert_eq!(account_of(&endpoint), account);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in "\\PC{0,200}") {
            let _ = parse(&text, "test");
        }

        #[test]
        fn pieces_in_any_order_do_not_panic(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "AccountName=a", "AccountName=", "AccountKey=a2V5", "AccountKey", "=", ";",
                    "BlobEndpoint=http://h:1/a", "BlobEndpoint=http://:", "EndpointSuffix=%",
                    "SharedAccessSignature=?", "UseDevelopmentStorage=true",
                    "DevelopmentStorageProxyUri=http://[::1]", "DefaultEndpointsProtocol=ftp",
                ]),
                0..8,
            ),
        ) {
            if let Ok(parsed) = parse(&parts.join(";"), "test") {
                prop_assert!(!parsed.endpoint.host.is_empty());
            }
        }
    }
}
