//! Named queries: the book's cookbook, to be run by name.

/// A question and its SQL.
#[derive(Debug)]
pub struct Query {
    /// What `--run` calls it.
    pub name: &'static str,
    /// What it answers.
    pub question: &'static str,
    /// The format it is for; `any` for those with spans or all.
    pub format: &'static str,
    /// The statement.
    pub sql: &'static str,
}

/// All queries.
pub fn all() -> &'static [Query] {
    static ALL: std::sync::OnceLock<Vec<Query>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| parse(include_str!("../queries/cookbook.sql")))
}

/// The query of a name.
pub fn find(name: &str) -> Option<&'static Query> {
    all().iter().find(|query| query.name == name)
}

/// Each query begins with two lines: `-- NAME (FORMAT)` and `-- QUESTION`.
fn parse(text: &'static str) -> Vec<Query> {
    let blocks = text.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    let query = |block: &'static str| {
        let (first, rest) = block.split_once('\n')?;
        let (second, sql) = rest.split_once('\n')?;
        let (name, format) = first.strip_prefix("-- ")?.split_once(" (")?;
        Some(Query { name, format: format.strip_suffix(')')?, question: second.strip_prefix("-- ")?, sql })
    };
    blocks.filter_map(query).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_the_file_is_a_query() {
        let blocks = include_str!("../queries/cookbook.sql").split("\n\n").filter(|block| !block.trim().is_empty());
        assert_eq!(all().len(), blocks.count());
        let mut names: Vec<_> = all().iter().map(|query| query.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().len(), "two queries have one name");
        for format in ["xray", "cacheray", "heph", "apitrace", "casemate"] {
            assert!(all().iter().filter(|query| query.format == format).count() >= 4, "{format}");
        }
        assert!(all().len() >= 30);
    }
}
