//! Access control lists: the list of every bucket and object, and parsing XML.

use std::ffi::{c_char, c_int};

use bucketload_s3::xml::elements;

use crate::abi::{S3_MAX_ACL_GRANT_COUNT, S3_MAX_GRANTEE_SIZE, S3AclGrant};
use crate::arguments;
use crate::calls::OWNER;
use crate::reply::copy_out;
use crate::status::Status;

const BY_EMAIL: c_int = 0;
const CANONICAL_USER: c_int = 1;
const ALL_AWS_USERS: c_int = 2;
const ALL_USERS: c_int = 3;
const LOG_DELIVERY: c_int = 4;
const FULL_CONTROL: c_int = 4;

/// Names of the permissions in XML, in the order of their numbers.
const PERMISSIONS: [&str; 5] = ["READ", "WRITE", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"];

/// Groups by the end of their URI.
const GROUPS: [(&str, c_int); 3] = [
    ("/groups/global/AllUsers", ALL_USERS),
    ("/groups/global/AuthenticatedUsers", ALL_AWS_USERS),
    ("/groups/s3/LogDelivery", LOG_DELIVERY),
];

/// The C buffers for an access control list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AclBuffers {
    pub(crate) owner_id: *mut c_char,
    pub(crate) owner_display_name: *mut c_char,
    pub(crate) count: *mut c_int,
    pub(crate) grants: *mut S3AclGrant,
}

/// An access control list.
#[derive(Debug, Default)]
pub(crate) struct AccessControlList {
    owner_id: String,
    owner_display_name: String,
    grants: Vec<Grant>,
}

#[derive(Debug, PartialEq, Eq)]
struct Grant {
    /// Kind of grantee; -1 while unknown.
    grantee: c_int,
    /// Address or identity.
    id: String,
    display_name: String,
    /// Index into [`PERMISSIONS`]; -1 while unknown.
    permission: c_int,
}

impl Default for Grant {
    fn default() -> Self {
        Self {
            grantee: -1,
            id: String::new(),
            display_name: String::new(),
            permission: -1,
        }
    }
}

impl AccessControlList {
    /// The list of every bucket and object: the owner has full control.
    pub(crate) fn of_owner() -> Self {
        let owner = || OWNER.to_string_lossy().into_owned();
        Self {
            owner_id: owner(),
            owner_display_name: owner(),
            grants: vec![Grant {
                grantee: CANONICAL_USER,
                id: owner(),
                display_name: owner(),
                permission: FULL_CONTROL,
            }],
        }
    }

    /// Writes the list into buffers of C.
    ///
    /// # Safety
    /// Each buffer is NULL or has the size that libs3 requires (128 bytes for texts, 100 grants).
    pub(crate) unsafe fn write(&self, to: &AclBuffers) {
        // SAFETY: by the contract of this function.
        unsafe {
            copy_out(self.owner_id.as_bytes(), to.owner_id, S3_MAX_GRANTEE_SIZE);
            let name = self.owner_display_name.as_bytes();
            copy_out(name, to.owner_display_name, S3_MAX_GRANTEE_SIZE);
            if let Some(count) = to.count.as_mut() {
                *count = c_int::try_from(self.grants.len()).unwrap_or(0);
            }
        }
        if to.grants.is_null() {
            return;
        }
        for (at, grant) in self.grants.iter().enumerate() {
            let mut out = S3AclGrant {
                grantee_type: grant.grantee,
                grantee: [0; 2 * S3_MAX_GRANTEE_SIZE],
                permission: grant.permission,
            };
            let (id, name) = out.grantee.split_at_mut(S3_MAX_GRANTEE_SIZE);
            // SAFETY: both halves have the given size; there are at most 100 grants, and room for
            // them by the contract of this function.
            unsafe {
                copy_out(grant.id.as_bytes(), id.as_mut_ptr(), id.len());
                copy_out(grant.display_name.as_bytes(), name.as_mut_ptr(), name.len());
                to.grants.add(at).write(out);
            }
        }
    }
}

/// Whether grants from C equal the fixed list: the owner has full control, and nobody else has access.
///
/// # Safety
/// `grants` is NULL or points to `count` grants.
pub(crate) unsafe fn is_of_owner(grants: *const S3AclGrant, count: c_int) -> bool {
    if grants.is_null() || count != 1 {
        return false;
    }
    // SAFETY: by the contract of this function.
    let grant = unsafe { &*grants };
    let id: Vec<u8> = grant.grantee[..S3_MAX_GRANTEE_SIZE]
        .iter()
        .map(|c| c.to_ne_bytes()[0])
        .take_while(|b| *b != 0)
        .collect();
    grant.grantee_type == CANONICAL_USER
        && grant.permission == FULL_CONTROL
        && id == OWNER.to_bytes()
}

/// Parses an access control policy.
pub(crate) fn parse(document: &[u8]) -> Result<AccessControlList, Status> {
    let mut list = AccessControlList::default();
    let mut current = Grant::default();
    let mut fault = None;
    elements(document, |path, text| {
        let text = text.get();
        let text = text.trim();
        let too_long = |status| (text.len() >= S3_MAX_GRANTEE_SIZE).then_some(status);
        let found = match path {
            ["AccessControlPolicy", "Owner", "ID"] => {
                text.clone_into(&mut list.owner_id);
                too_long(Status::UserIdTooLong)
            }
            ["AccessControlPolicy", "Owner", "DisplayName"] => {
                text.clone_into(&mut list.owner_display_name);
                too_long(Status::UserDisplayNameTooLong)
            }
            [
                "AccessControlPolicy",
                "AccessControlList",
                "Grant",
                rest @ ..,
            ] => match rest {
                ["Grantee", "ID"] => {
                    current.grantee = CANONICAL_USER;
                    text.clone_into(&mut current.id);
                    too_long(Status::UserIdTooLong)
                }
                ["Grantee", "DisplayName"] => {
                    text.clone_into(&mut current.display_name);
                    too_long(Status::UserDisplayNameTooLong)
                }
                ["Grantee", "EmailAddress"] => {
                    current.grantee = BY_EMAIL;
                    text.clone_into(&mut current.id);
                    too_long(Status::EmailAddressTooLong)
                }
                ["Grantee", "URI"] => {
                    let group = GROUPS.iter().find(|(end, _)| text.ends_with(end));
                    current.grantee = group.map_or(-1, |(_, number)| *number);
                    None
                }
                ["Permission"] => {
                    let number = PERMISSIONS.iter().position(|name| *name == text);
                    current.permission = number.map_or(-1, |n| c_int::try_from(n).unwrap_or(-1));
                    (current.permission < 0).then_some(Status::BadPermission)
                }
                [] => {
                    let grant = std::mem::take(&mut current);
                    let status = match grant {
                        Grant { grantee: -1, .. } => Some(Status::BadGrantee),
                        Grant { permission: -1, .. } => Some(Status::BadPermission),
                        _ if list.grants.len() == S3_MAX_ACL_GRANT_COUNT => {
                            Some(Status::TooManyGrants)
                        }
                        _ => None,
                    };
                    list.grants.push(grant);
                    status
                }
                _ => None,
            },
            _ => None,
        };
        fault = fault.or(found);
    })
    .map_err(|_| Status::XmlParseFailure)?;
    match fault {
        Some(fault) => Err(fault),
        None => Ok(list),
    }
}

/// Parses an access control policy from C into buffers of C.
///
/// # Safety
/// `document` as for [`arguments::bytes`], the buffers as for [`AccessControlList::write`].
pub(crate) unsafe fn convert(document: *const c_char, to: &AclBuffers) -> Result<(), Status> {
    // SAFETY: by the contract of this function.
    let document = unsafe { arguments::bytes(document) }.ok_or(Status::XmlParseFailure)?;
    let list = parse(document)?;
    // SAFETY: by the contract of this function.
    unsafe { list.write(to) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(grants: &str) -> String {
        format!(
            "<AccessControlPolicy xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Owner>\
             <ID>o</ID><DisplayName>Olga</DisplayName></Owner><AccessControlList>{grants}\
             </AccessControlList></AccessControlPolicy>"
        )
    }

    fn grant(grantee: &str, permission: &str) -> String {
        format!("<Grant><Grantee>{grantee}</Grantee><Permission>{permission}</Permission></Grant>")
    }

    #[test]
    fn policies_with_every_kind_of_grantee_parse() {
        let document = policy(
            &[
                grant("<ID>x</ID><DisplayName>X &amp; Y</DisplayName>", "READ"),
                grant("<EmailAddress>a@b</EmailAddress>", "WRITE_ACP"),
                grant(
                    "<URI>http://acs.amazonaws.com/groups/global/AllUsers</URI>",
                    "WRITE",
                ),
            ]
            .concat(),
        );
        let list = parse(document.as_bytes()).unwrap();
        assert_eq!((&*list.owner_id, &*list.owner_display_name), ("o", "Olga"));
        let told: Vec<(c_int, &str, &str, c_int)> = list
            .grants
            .iter()
            .map(|g| (g.grantee, &*g.id, &*g.display_name, g.permission))
            .collect();
        let expected = [
            (CANONICAL_USER, "x", "X & Y", 0),
            (BY_EMAIL, "a@b", "", 3),
            (ALL_USERS, "", "", 1),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn each_error_has_its_status() {
        let long = "x".repeat(S3_MAX_GRANTEE_SIZE);
        let many = grant("<ID>x</ID>", "READ").repeat(S3_MAX_ACL_GRANT_COUNT + 1);
        for (document, status) in [
            ("<AccessControlPolicy>".to_owned(), Status::XmlParseFailure),
            (
                policy(&grant("<URI>http://x</URI>", "READ")),
                Status::BadGrantee,
            ),
            (policy(&grant("<ID>x</ID>", "ALL")), Status::BadPermission),
            (
                policy(&grant(&format!("<ID>{long}</ID>"), "READ")),
                Status::UserIdTooLong,
            ),
            (policy(&many), Status::TooManyGrants),
        ] {
            assert_eq!(parse(document.as_bytes()).err(), Some(status));
        }
    }
}
