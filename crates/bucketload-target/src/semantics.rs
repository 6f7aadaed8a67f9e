//! What operations do on each API.
//!
//! One workload does different work on different APIs. Readers who weigh the cost of a protocol need to see what they
//! get for it, so a comparison of two drivers shows where their operations differ.

/// What a driver's operations do, in words for a table.
#[derive(Debug)]
pub struct Semantics {
    /// Writing an object in one request.
    pub write: &'static str,
    /// Writing an object that exists.
    pub overwrite: &'static str,
    /// Writing an object in parts.
    pub parts: &'static str,
    /// Appending to an object.
    pub append: &'static str,
    /// Renaming an object.
    pub rename: &'static str,
    /// Listing objects.
    pub list: &'static str,
    /// Deleting an object that does not exist.
    pub delete_nothing: &'static str,
    /// Deleting many objects at once.
    pub delete_many: &'static str,
}

impl Semantics {
    /// An overwrite that readers see as a whole.
    pub const ATOMIC: &'static str = "atomic: readers see the old object or the new one";
    /// An operation that the API does not offer.
    pub const NONE: &'static str = "not in the API";
    /// The outcome for an object that does not exist.
    pub const MISSED: &'static str = "not-found";

    /// The rows of the table: topic and description.
    #[must_use]
    pub const fn rows(&self) -> [(&'static str, &'static str); 8] {
        [
            ("write (put)", self.write),
            ("overwrite", self.overwrite),
            ("write in parts", self.parts),
            ("append", self.append),
            ("rename", self.rename),
            ("list", self.list),
            ("delete of nothing", self.delete_nothing),
            ("delete of many", self.delete_many),
        ]
    }
}
