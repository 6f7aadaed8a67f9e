//! Checks which mix entries are valid for their key set, and what they do to its objects.

use super::entry::Role;
use crate::generate::LawError;
use crate::generate::objects::Population;
use crate::op::OpClass;
use crate::plan::{KeyLaw, MixEntry};

/// An error about `field` of the entry.
pub(super) fn error(field: &str, reason: impl Into<String>) -> LawError {
    LawError::new(field, reason)
}

/// Rewords the error about an empty key set for the author of the mix.
pub(super) fn empty(e: LawError, entry: &MixEntry) -> LawError {
    if e.field == "count" {
        let reason = format!(
            "{} needs initial objects: give key set {} a count of at least 1",
            entry.class, entry.keyset
        );
        error("keys", reason)
    } else {
        e.within("keys")
    }
}

/// Checks that the entry is valid for its key set and determines its effect on objects.
pub(super) fn role(entry: &MixEntry, set: &Population, prepare: bool) -> Result<Role, LawError> {
    let class = entry.class;
    if entry.size.is_some() && !class.writes_body() {
        return Err(error(
            "size",
            format!("does not apply to {class}, which writes no body"),
        ));
    }
    match (&entry.range, class) {
        (None, OpClass::RangeGet) => {
            return Err(error("range", "is missing, range-get needs one"));
        }
        (Some(_), other) if other != OpClass::RangeGet => {
            return Err(error("range", format!("does not apply to {other}")));
        }
        _ => {}
    }
    if class.writes_body() {
        if entry.keys == KeyLaw::Fresh {
            return Ok(Role::WriteFresh);
        }
        // The content that an append adds is never the object's initial content.
        if set.overwritten() && !prepare || class == OpClass::Append {
            return Ok(Role::Overwrite);
        }
        if entry.size.is_some() {
            let reason = "would change the sizes of existing objects, but their key set is not \
                          marked as overwritten; mark it, drop the size or write fresh keys";
            return Err(error("size", reason));
        }
        if matches!(entry.keys, KeyLaw::Latest { .. }) {
            let reason = "would overwrite the newest objects, but their key set is not marked as \
                          overwritten";
            return Err(error("keys", reason));
        }
        return Ok(Role::WriteInitial);
    }
    if class.needs_object() && !class.has_source() && entry.keys == KeyLaw::Fresh {
        let reason = format!("fresh objects do not exist yet, so {class} would find none");
        return Err(error("keys", reason));
    }
    if class.by_part() && (set.overwritten() || matches!(entry.keys, KeyLaw::Latest { .. })) {
        let reason = format!("{class} knows the parts of initial objects that nobody overwrites");
        return Err(error("keys", reason));
    }
    Ok(match class {
        class if class.by_part() => Role::ReadPart,
        OpClass::Get | OpClass::Head => Role::Read,
        OpClass::RangeGet => Role::ReadRange,
        class if class.has_source() => Role::Copy,
        // The table of versions knows its size.
        OpClass::GetVersion => Role::ReadVersion,
        _ => Role::Plain,
    })
}

/// The entry's `count`, checked for the classes that use it.
pub(super) fn check_count(entry: &MixEntry, objects: u64) -> Result<u64, LawError> {
    let needed = match entry.class {
        OpClass::DeleteMany => "keys per request",
        class if class.lists() => "keys per page",
        OpClass::MultipartPut | OpClass::MultipartCopy => "bytes per part",
        class if class.by_part() => "bytes per part",
        class if class.has_days() => "days",
        _ => return Ok(entry.count),
    };
    if entry.count == 0 {
        return Err(error("count", format!("is 0, must be the {needed}")));
    }
    Ok(if entry.class == OpClass::DeleteMany {
        entry.count.min(objects.max(1))
    } else {
        entry.count
    })
}
