//! RestoreObject. No object is ever archived, because writes to archive storage classes are refused.
//! A well-formed request therefore gets the response that S3 gives for objects that are not archived:
//! `InvalidObjectState` (Amazon S3 API Reference, RestoreObject).

use super::Ctx;
use crate::error::{Code, S3Result};
use crate::respond::Body;
use crate::xml_in::{malformed, walk};

/// RestoreObject.
pub(crate) fn object(ctx: &mut Ctx<'_>, input: &[u8]) -> S3Result<Body> {
    let days = days(input)?;
    ctx.object_info()?;
    match days {
        Some(0) => Err(Code::InvalidArgument.into()),
        _ => Err(Code::InvalidObjectState.into()),
    }
}

/// The number of days to keep the restored copy, as requested.
fn days(body: &[u8]) -> S3Result<Option<u32>> {
    let (mut seen, mut days) = (false, None);
    walk(body, |path, text| {
        match *path {
            ["RestoreRequest"] => seen = true,
            ["RestoreRequest", "Days"] => {
                days = Some(text.get().trim().parse().map_err(|_| malformed())?);
            }
            _ => {}
        }
        Ok(())
    })?;
    if seen { Ok(days) } else { Err(malformed()) }
}
