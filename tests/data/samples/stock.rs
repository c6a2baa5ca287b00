//! What lies on the shelves, counted by article.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Stock {
    counts: HashMap<String, u32>,
}

impl Stock {
    /// Puts `count` pieces on the shelf.
    pub fn add(&mut self, article: &str, count: u32) {
        *self.counts.entry(article.to_string()).or_insert(0) += count;
    }

    /// Takes `count` pieces off the shelf; tells whether there were enough.
    pub fn take(&mut self, article: &str, count: u32) -> bool {
        match self.counts.get_mut(article) {
            Some(left) if *left >= count => {
                *left -= count;
                true
            }
            _ => false,
        }
    }

    /// Articles of which fewer than `limit` pieces are left, in order of their names.
    pub fn low(&self, limit: u32) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .counts
            .iter()
            .filter(|(_, &left)| left < limit)
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_only_what_is_there() {
        let mut stock = Stock::default();
        stock.add("lamp", 2);
        assert!(stock.take("lamp", 2));
        assert!(!stock.take("lamp", 1));
    }
}
