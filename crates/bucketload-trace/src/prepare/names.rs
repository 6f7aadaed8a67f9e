//! Numbers names in the order of their first appearance.

use std::collections::HashMap;

use crate::hash::hash64;

/// Maximum number of names with their own number, which bounds the memory.
const MAX_NAMES: usize = 65_536;

/// A dictionary.
#[derive(Debug, Default)]
pub(crate) struct Names {
    ids: HashMap<Vec<u8>, u32>,
    names: Vec<Vec<u8>>,
}

impl Names {
    /// The number of `name`, from 0. After the first 65,536 names it is a hash with the highest bit set, which may
    /// rarely collide.
    pub(crate) fn id(&mut self, name: &[u8]) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.names.len();
        if id >= MAX_NAMES {
            return hash64(&[name]) as u32 | 1 << 31;
        }
        self.ids.insert(name.to_owned(), id as u32);
        self.names.push(name.to_owned());
        id as u32
    }

    /// The names by their number.
    pub(crate) fn names(&self) -> &[Vec<u8>] {
        &self.names
    }
}
