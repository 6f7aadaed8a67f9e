//! RestoreObject. No object here is ever archived (writes in another storage class than the standard ones
//! are refused), so a well-formed request is answered as S3 answers for such objects:
//! `InvalidObjectState` (Amazon S3 API Reference, RestoreObject).

use super::Ctx;
use crate::error::{Code, S3Result};
use crate::respond::Body;
use crate::xml_in::{malformed, walk};

/// RestoreObject.
pub(crate) fn object(ctx: &mut Ctx<'_>, input: &[u8]) -> S3Result<Body> {
    let days = days(input)?;
    ctx.store().head(ctx.target.bucket(), ctx.target.key())?;
    match days {
        Some(0) => Err(Code::InvalidArgument.into()),
        _ => Err(Code::InvalidObjectState.into()),
    }
}

/// The days that a restored copy is asked to be kept.
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
    match seen {
        true => Ok(days),
        false => Err(malformed()),
    }
}
