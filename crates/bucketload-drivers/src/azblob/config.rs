//! Configuration of the driver, with the origin of each value.
//!
//! [`AzureConfig::new`] builds one directly (tests); `AzureConfig::discover` follows the
//! conventions of the Azure tools.

use std::net::IpAddr;

use crate::http::config::named_enum;
use crate::http::{ConfigError, Endpoint, Origin, Secret, TlsConfig};

use super::sign;

/// Service version that requests ask for by default (`x-ms-version`): the first with append blocks of up
/// to 100 MiB. Naming a version keeps the form of answers stable when the service is updated.
pub const API_VERSION: &str = "2022-11-02";
/// The first version whose signatures for copies have the form that the driver gives them.
const OLDEST: &str = "2020-12-06";

/// Checks a version of the service.
///
/// # Errors
/// When it is no date, or too old.
pub(super) fn check_version(text: &str) -> Result<(), String> {
    let form = |(at, b): (usize, u8)| match at {
        4 | 7 => b == b'-',
        _ => b.is_ascii_digit(),
    };
    if text.len() != 10 || !text.bytes().enumerate().all(form) {
        return Err(format!(
            "`{text}` is no version of the service; write a date such as {API_VERSION}"
        ));
    }
    match text < OLDEST {
        true => Err(format!("the driver needs version {OLDEST} or later")),
        false => Ok(()),
    }
}

/// How requests are authorised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Signed with the account's key (base64).
    SharedKey(Secret),
    /// With a shared access signature: its query string, without the question mark.
    Sas(Secret),
    /// No authorisation: only containers with public access.
    Anonymous,
}

/// Checksum sent with every object body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentChecksum {
    /// `Content-MD5`.
    Md5,
    /// `x-ms-content-crc64`, which is CRC-64/NVME.
    Crc64,
}

named_enum!(ContentChecksum, "checksum that Azure Blob Storage takes", {
    Md5 => "md5",
    Crc64 => "crc64nvme",
});

/// Settings of a storage account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AzureConfig {
    /// Where to connect; worker `w` uses endpoint `w` modulo their number.
    pub endpoints: Vec<Endpoint>,
    /// Name of the storage account.
    pub account: String,
    /// How requests are authorised.
    pub auth: Auth,
    /// Version of the service that requests ask for.
    pub api_version: String,
    /// Checksum of object bodies.
    pub checksum: Option<ContentChecksum>,
    /// Encryption.
    pub tls: TlsConfig,
    /// Local addresses to connect from; worker `w` uses number `w` modulo their number.
    pub source_addresses: Vec<IpAddr>,
    /// Where the values came from.
    pub origins: Vec<Origin>,
}

impl AzureConfig {
    /// A configuration without a checksum.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, account: &str, auth: Auth) -> Self {
        Self {
            endpoints,
            account: account.to_owned(),
            auth,
            api_version: API_VERSION.to_owned(),
            checksum: None,
            tls: TlsConfig::default(),
            source_addresses: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Checks the configuration as a whole.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |place: &str, problem: &str, remedy: &str| {
            Err(ConfigError::new(place, problem, remedy))
        };
        if self.endpoints.is_empty() {
            return fail("endpoint", "there is none", "set --endpoint-url");
        }
        if let Err(problem) = check_version(&self.api_version) {
            return fail(
                "--azure-api-version",
                &problem,
                "leave it out for the default",
            );
        }
        match &self.auth {
            Auth::SharedKey(key) => {
                let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
                if self.account.is_empty() || !self.account.bytes().all(legal) {
                    return fail(
                        "account name",
                        "it is missing, or has characters other than lower-case letters and digits",
                        "set AZURE_STORAGE_ACCOUNT",
                    );
                }
                if sign::decode_key(key.expose()).is_none() {
                    return fail(
                        "account key",
                        "it is empty or not base64",
                        "copy it as the portal shows it, including the trailing `==`",
                    );
                }
            }
            Auth::Sas(token) => {
                let token = token.expose();
                if !token.bytes().all(|b| b.is_ascii_graphic()) || token.contains('#') {
                    return fail(
                        "SAS token",
                        "it contains blanks or other characters that a URL cannot have",
                        "copy the query of the URL, without quotes",
                    );
                }
                if !token
                    .split('&')
                    .any(|p| p.len() > 4 && p.starts_with("sig="))
                {
                    return fail(
                        "SAS token",
                        "it has no signature (sig=…)",
                        "copy the whole query of the URL; quote it in a shell because of the `&`",
                    );
                }
            }
            Auth::Anonymous => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Auth, AzureConfig, ContentChecksum};
    use crate::http::Endpoint;

    fn with(account: &str, auth: Auth) -> Result<(), String> {
        let endpoint = Endpoint::parse("http://127.0.0.1:10000/a", "test").unwrap();
        let config = AzureConfig::new(vec![endpoint], account, auth);
        let text = format!("{config:?}");
        assert!(
            !text.contains("sig=") && !text.contains("c2VjcmV0"),
            "{text}"
        );
        config.check().map_err(|e| e.to_string())
    }

    #[test]
    fn bad_settings_are_refused_and_secrets_are_not_printed() {
        assert_eq!(with("acc1", Auth::SharedKey("c2VjcmV0".into())), Ok(()));
        assert_eq!(with("", Auth::Sas("sv=1&sig=abc%3D".into())), Ok(()));
        assert_eq!(with("", Auth::Anonymous), Ok(()));
        for (account, auth, word) in [
            (
                "",
                Auth::SharedKey("c2VjcmV0".into()),
                "AZURE_STORAGE_ACCOUNT",
            ),
            ("Big", Auth::SharedKey("c2VjcmV0".into()), "lower-case"),
            ("a", Auth::SharedKey("not base64!".into()), "base64"),
            ("a", Auth::SharedKey("".into()), "base64"),
            ("a", Auth::Sas("sv=1".into()), "sig="),
            ("a", Auth::Sas("sv=1 &sig=abc".into()), "blanks"),
        ] {
            let error = with(account, auth).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn checksums_are_named() {
        assert_eq!("crc64nvme".parse(), Ok(ContentChecksum::Crc64));
        let error = "sha256".parse::<ContentChecksum>().unwrap_err();
        assert!(error.contains("md5, crc64nvme"), "{error}");
    }
}
