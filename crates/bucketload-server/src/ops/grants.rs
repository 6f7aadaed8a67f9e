//! Access control lists as they are kept: a canned one by its name, any other one as its grants.

use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::xml::OWNER_ID;
use crate::xml_in::walk;

/// Everyone, with or without keys.
pub(crate) const ALL: &str = "http://acs.amazonaws.com/groups/global/AllUsers";
/// Everyone with keys.
pub(crate) const KNOWN: &str = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers";
/// The service that writes access logs.
const LOGS: &str = "http://acs.amazonaws.com/groups/s3/LogDelivery";

/// What can be granted.
const PERMISSIONS: [&str; 5] = ["READ", "WRITE", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"];
/// The headers that grant something, in the order of [`PERMISSIONS`].
const HEADERS: [Name; 5] = [
    Name::GrantRead,
    Name::GrantWrite,
    Name::GrantReadAcp,
    Name::GrantWriteAcp,
    Name::GrantFullControl,
];
/// Maximum number of grants in a list: S3's limit.
const MAX: usize = 100;
/// What a list of grants begins with, to tell it from the name of a canned one.
const LISTED: &str = "grants:";

/// A grant to a user, by the canonical id, or to a group, by its URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant<'a> {
    pub(crate) permission: &'a str,
    pub(crate) grantee: &'a str,
}

impl Grant<'_> {
    /// Whether the grantee is a group.
    pub(crate) fn to_group(self) -> bool {
        self.grantee.starts_with("http:")
    }
}

/// A list that a request names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// As it is kept: the name of a canned list, or grants. `None` is `private`.
    pub(crate) list: Option<String>,
    /// Whether it means no more than that the bucket's owner owns the object.
    pub(crate) owners: bool,
}

/// The grants of a canned list beside the owner's; `None` if there is no such list.
fn canned(name: &str) -> Option<&'static [Grant<'static>]> {
    const fn to(grantee: &'static str, permission: &'static str) -> Grant<'static> {
        Grant {
            permission,
            grantee,
        }
    }
    Some(match name {
        "private" | "bucket-owner-read" | "bucket-owner-full-control" | "aws-exec-read" => &[],
        "public-read" => const { &[to(ALL, "READ")] },
        "public-read-write" => const { &[to(ALL, "READ"), to(ALL, "WRITE")] },
        "authenticated-read" => const { &[to(KNOWN, "READ")] },
        "log-delivery-write" => const { &[to(LOGS, "WRITE"), to(LOGS, "READ_ACP")] },
        _ => return None,
    })
}

/// The grants of a list as it is kept.
pub(crate) fn of(list: Option<&str>) -> Vec<Grant<'_>> {
    if let Some(grants) = list.and_then(|list| list.strip_prefix(LISTED)) {
        let grant = |text| {
            let (permission, grantee) = str::split_once(text, ' ')?;
            Some(Grant {
                permission,
                grantee,
            })
        };
        return grants.split(';').filter_map(grant).collect();
    }
    let others = list.and_then(canned).unwrap_or_default();
    let owner = Grant {
        permission: "FULL_CONTROL",
        grantee: OWNER_ID,
    };
    others.iter().copied().chain([owner]).collect()
}

/// A list of `grants`, as it is kept.
fn kept(grants: &[Grant<'_>]) -> S3Result<Option<String>> {
    if grants.len() > MAX {
        return Err(Code::MalformedACLError.into());
    }
    if grants == of(None) {
        return Ok(None);
    }
    let one = |grant: &Grant<'_>| format!("{} {}", grant.permission, grant.grantee);
    let all: Vec<_> = grants.iter().map(one).collect();
    Ok(Some([LISTED, &all.join(";")].concat()))
}

/// Checks the grantee that an element or header of the type `kind` names.
fn grantee(kind: &str, value: &str) -> S3Result<()> {
    let invalid = |message| Err(S3Error::new(Code::InvalidArgument, message));
    match kind {
        "id" if value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit()) => Ok(()),
        "id" => invalid("Invalid id: a canonical user id has 64 hexadecimal digits."),
        "uri" if [ALL, KNOWN, LOGS].contains(&value) => Ok(()),
        "uri" => invalid("Invalid group uri."),
        "emailaddress" => Err(Code::UnresolvableGrantByEmailAddress.into()),
        _ => invalid("A grantee is given as id, uri or emailAddress."),
    }
}

/// The list that the request's headers name.
///
/// # Errors
/// `InvalidArgument` for an unknown canned list or grantee, `InvalidRequest` for a canned list beside
/// grants.
pub(crate) fn from_headers(headers: &Headers<'_, '_>) -> S3Result<Option<Asked>> {
    let granted = HEADERS.iter().any(|name| headers.has(*name));
    let asked = headers.text(Name::Acl)?;
    if let Some(name) = asked {
        if granted {
            return Err(S3Error::new(
                Code::InvalidRequest,
                "Specifying both canned ACLs and header grants is not allowed.",
            ));
        }
        let Some(others) = canned(name) else {
            return Err(S3Error::new(
                Code::InvalidArgument,
                "The canned ACL is unknown.",
            ));
        };
        return Ok(Some(Asked {
            list: (!others.is_empty()).then(|| name.to_owned()),
            owners: name == "bucket-owner-full-control",
        }));
    }
    if !granted {
        return Ok(None);
    }
    let mut grants = Vec::new();
    for (name, permission) in HEADERS.into_iter().zip(PERMISSIONS) {
        for part in headers.text(name)?.unwrap_or_default().split(',') {
            if part.trim().is_empty() {
                continue;
            }
            let (kind, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim().trim_matches('"');
            grantee(&kind.trim().to_ascii_lowercase(), value)?;
            grants.push(Grant {
                permission,
                grantee: value,
            });
        }
    }
    Ok(Some(Asked {
        list: kept(&grants)?,
        owners: false,
    }))
}

/// Reads an `AccessControlPolicy` document.
///
/// # Errors
/// `MalformedACLError`, `AccessDenied` if it names another owner, `InvalidArgument` for an unknown
/// grantee.
pub(crate) fn from_document(body: &[u8]) -> S3Result<Asked> {
    let malformed = || S3Error::from(Code::MalformedACLError);
    let mut owner = None;
    let (mut who, mut what): (Option<String>, Option<&str>) = (None, None);
    let mut grants: Vec<(&str, String)> = Vec::new();
    walk(body, |path, text| {
        let ["AccessControlPolicy", rest @ ..] = path else {
            return Ok(());
        };
        match *rest {
            ["Owner", "ID"] => owner = Some(text.get()),
            [
                "AccessControlList",
                "Grant",
                "Grantee",
                kind @ ("ID" | "URI" | "EmailAddress"),
            ] => {
                let value = text.get().trim().to_owned();
                grantee(&kind.to_ascii_lowercase(), &value)?;
                who = Some(value);
            }
            ["AccessControlList", "Grant", "Permission"] => {
                what = PERMISSIONS.into_iter().find(|name| text.is(name));
            }
            ["AccessControlList", "Grant"] => match (what.take(), who.take()) {
                (Some(what), Some(who)) => grants.push((what, who)),
                _ => return Err(malformed()),
            },
            _ => {}
        }
        Ok(())
    })
    .map_err(|error| match error.code {
        Code::MalformedXML => malformed(),
        _ => error,
    })?;
    match owner.as_deref().map(str::trim) {
        Some(OWNER_ID) => {}
        Some(_) => return Err(Code::AccessDenied.into()),
        None => return Err(malformed()),
    }
    let grants: Vec<_> = grants
        .iter()
        .map(|(permission, grantee)| Grant {
            permission,
            grantee,
        })
        .collect();
    Ok(Asked {
        list: kept(&grants)?,
        owners: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::list;

    const OTHER: &str = "1111111111111111111111111111111111111111111111111111111111111111";

    fn asked(headers: &[(&str, &str)]) -> Result<Option<Asked>, Code> {
        let all = list(headers);
        from_headers(&Headers::new(&all).unwrap()).map_err(|error| error.code)
    }

    fn document(grants: &str) -> Result<Option<String>, Code> {
        let body = format!(
            "<AccessControlPolicy><Owner><ID>{OWNER_ID}</ID></Owner><AccessControlList>{grants}</AccessControlList>\
             </AccessControlPolicy>"
        );
        let read = from_document(body.as_bytes());
        read.map(|asked| asked.list).map_err(|error| error.code)
    }

    #[test]
    fn headers_name_lists() {
        assert_eq!(asked(&[]), Ok(None));
        for (name, list, owners) in [
            ("private", None, false),
            ("bucket-owner-full-control", None, true),
            ("public-read", Some("public-read"), false),
        ] {
            let want = Asked {
                list: list.map(str::to_owned),
                owners,
            };
            assert_eq!(asked(&[("x-amz-acl", name)]), Ok(Some(want)));
        }
        let both = format!("id={OTHER}, uri=\"{ALL}\"");
        let got = asked(&[
            ("x-amz-grant-read", &both),
            ("x-amz-grant-write-acp", &both),
        ]);
        let list = got.unwrap().unwrap().list.unwrap();
        let grants = of(Some(&list));
        let seen: Vec<_> = grants
            .iter()
            .map(|grant| (grant.permission, grant.to_group()))
            .collect();
        assert_eq!(
            seen,
            [
                ("READ", false),
                ("READ", true),
                ("WRITE_ACP", false),
                ("WRITE_ACP", true)
            ]
        );
        for (name, value, code) in [
            ("x-amz-acl", "public", Code::InvalidArgument),
            ("x-amz-grant-read", "id=1", Code::InvalidArgument),
            ("x-amz-grant-read", "uri=http://x", Code::InvalidArgument),
            ("x-amz-grant-read", "everyone", Code::InvalidArgument),
            (
                "x-amz-grant-read",
                "emailAddress=a@b",
                Code::UnresolvableGrantByEmailAddress,
            ),
        ] {
            assert_eq!(asked(&[(name, value)]), Err(code), "{value}");
        }
        let twice = [("x-amz-acl", "private"), ("x-amz-grant-read", &*both)];
        assert_eq!(asked(&twice), Err(Code::InvalidRequest));
    }

    #[test]
    fn documents_name_lists() {
        let grant = |who: &str, what: &str| {
            format!("<Grant><Grantee>{who}</Grantee><Permission>{what}</Permission></Grant>")
        };
        let owner = format!("<ID>{OWNER_ID}</ID>");
        assert_eq!(document(&grant(&owner, "FULL_CONTROL")), Ok(None));
        assert_eq!(document(""), Ok(Some("grants:".to_owned())));
        assert_eq!(of(Some("grants:")), []);
        let other = format!("<ID>{OTHER}</ID>");
        let list = document(&(grant(&owner, "READ") + &grant(&other, "WRITE"))).unwrap();
        let grants = of(list.as_deref());
        assert_eq!((grants[0].grantee, grants[1].grantee), (OWNER_ID, OTHER));
        for (bad, code) in [
            (grant("<ID>_foo</ID>", "READ"), Code::InvalidArgument),
            (grant(&owner, "EAT"), Code::MalformedACLError),
            (grant("", "READ"), Code::MalformedACLError),
            ("<Grant>".to_owned(), Code::MalformedACLError),
            (grant(&owner, "READ").repeat(101), Code::MalformedACLError),
        ] {
            assert_eq!(document(&bad), Err(code), "{bad}");
        }
        let owned = |who: &str| {
            let body =
                format!("<AccessControlPolicy>{who}<AccessControlList/></AccessControlPolicy>");
            from_document(body.as_bytes()).map_err(|error| error.code)
        };
        assert_eq!(owned(""), Err(Code::MalformedACLError));
        let theirs = format!("<Owner><ID>{OTHER}</ID></Owner>");
        assert_eq!(owned(&theirs), Err(Code::AccessDenied));
    }
}
