//! What operations mean where.
//!
//! The same workload is not the same work on every API. Whoever reads the price of a protocol needs to see what is
//! bought for it: a comparison of two drivers shows where they differ.

/// What operations of a driver mean, in words for a table.
#[derive(Debug)]
pub struct Semantics {
    /// Writing an object at once.
    pub write: &'static str,
    /// Writing an object that is there.
    pub overwrite: &'static str,
    /// Writing an object in parts.
    pub parts: &'static str,
    /// Appending to an object.
    pub append: &'static str,
    /// Renaming an object.
    pub rename: &'static str,
    /// Listing objects.
    pub list: &'static str,
    /// Deleting an object that is not there.
    pub delete_nothing: &'static str,
    /// Deleting many objects.
    pub delete_many: &'static str,
}

impl Semantics {
    /// An overwrite that readers see at once.
    pub const ATOMIC: &'static str = "atomic: readers meet the old object or the new one";
    /// What the API does not have.
    pub const NONE: &'static str = "not in the API";
    /// An answer about an object that is not there.
    pub const MISSED: &'static str = "not-found";

    /// Topics and words.
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
