//! The words of a definition, as SQLite keeps it: the text that its author wrote.

/// A word of SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// A keyword, a number or a name without quotes.
    Bare(String),
    /// A name in quotes, without them.
    Name(String),
    /// A text, without its quotes.
    Text(String),
    /// Any other character.
    Sign(char),
}

impl Word {
    /// Whether it is this keyword.
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Bare(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// Whether it names this column. SQLite ignores the case of ASCII letters.
    pub(super) fn names(&self, column: &str) -> bool {
        matches!(self, Self::Bare(name) | Self::Name(name) if name.eq_ignore_ascii_case(column))
    }
}

/// Takes a definition apart, without its spaces and comments.
pub(super) fn words(sql: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        rest = if rest.starts_with("--") {
            rest.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else if first.is_whitespace() {
            after
        } else if let Some(end) = closing_quote(first) {
            let (name, after) = quoted(after, end);
            words.push(if first == '\'' { Word::Text(name) } else { Word::Name(name) });
            after
        } else if is_part_of_word(first) {
            let (word, after) = rest.split_at(rest.find(|c| !is_part_of_word(c)).unwrap_or(rest.len()));
            words.push(Word::Bare(word.to_owned()));
            after
        } else {
            words.push(Word::Sign(first));
            after
        };
    }
    words
}

fn is_part_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

fn closing_quote(opening: char) -> Option<char> {
    match opening {
        '"' | '\'' | '`' => Some(opening),
        '[' => Some(']'),
        _ => None,
    }
}

/// What is before the closing quote, and what comes after it. A doubled quote is one, except for brackets.
fn quoted(mut rest: &str, end: char) -> (String, &str) {
    let mut name = String::new();
    while let Some((part, after)) = rest.split_once(end) {
        name.push_str(part);
        match after.strip_prefix(end).filter(|_| end != ']') {
            Some(after) => {
                name.push(end);
                rest = after;
            }
            None => return (name, after),
        }
    }
    (name + rest, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_spaces_are_no_words_and_quotes_are_taken_off() {
        let sql = "a /* \"b\" */ \"c\"\"d\" -- e\n[f]]`g``h` 'i''j'é1;";
        let expected = [
            Word::Bare("a".into()),
            Word::Name("c\"d".into()),
            Word::Name("f".into()),
            Word::Sign(']'),
            Word::Name("g`h".into()),
            Word::Text("i'j".into()),
            Word::Bare("é1".into()),
            Word::Sign(';'),
        ];
        assert_eq!(words(sql), expected);
    }

    #[test]
    fn what_is_not_closed_ends_with_the_text() {
        assert_eq!(words("\"a"), [Word::Name("a".into())]);
        assert_eq!(words("a /* b"), [Word::Bare("a".into())]);
        assert_eq!(words("a -- b"), [Word::Bare("a".into())]);
    }
}
