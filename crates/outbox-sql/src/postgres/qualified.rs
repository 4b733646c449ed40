//! Every text that is sent to PostgreSQL names what is the server's own with its schema.

use std::time::Duration;

use outbox_core::{Settling, TenantId};

use super::encoding::ENCODING;
use super::{
    BEGIN_CLAIM, BEGIN_READ, CONFIRM, ClaimNumber, Durability, PostgresStatements, SERVER_TRAITS,
    ServerTraits, TRANSACTION, WatermarkStatements, claim_settings,
};
use super::{schema, wake};
use crate::postgres::check::{
    DESCRIBE_COLUMNS, DESCRIBE_DANGERS, DESCRIBE_INDEXES, DESCRIBE_SERVER, DESCRIBE_TABLE, FIND_SEQUENCE,
    SESSION, describe_sequence,
};
use crate::table::{Columns, OutboxTable, PayloadType};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A function, type, operator, collation or catalog that a statement names without its schema is another's, where
/// the session's `search_path` finds one of the same name first: `hashtext` was, and one tenant had two keys.
#[test]
fn every_statement_names_what_is_the_server_s_own_with_its_schema() -> Outcome {
    for statement in statements()? {
        assert_eq!(unqualified(&statement), None, "{statement}");
    }
    Ok(())
}

#[test]
fn what_has_no_schema_is_found() {
    for (statement, found) in [
        ("SELECT hashtext('a')", "hashtext"),
        ("SELECT 1 FROM public.t WHERE a = 1", "="),
        ("SELECT $1::text", "::"),
        ("SELECT timestamptz 'epoch'", "timestamptz"),
        ("SELECT 1 FROM pg_locks", "pg_locks"),
        ("SELECT a IS NOT DISTINCT FROM b", "DISTINCT"),
        ("SELECT a IN (1, 2)", "IN"),
        ("SELECT CASE a WHEN 1 THEN 2 END", "CASE"),
        ("SELECT a OPERATOR(=) b", "="),
        ("CREATE TABLE \"t\" (\"a\" text)", "text"),
        ("CREATE TABLE \"t\" (\"a\" pg_catalog.text COLLATE \"C\")", "COLLATE"),
        ("SELECT other.hashtext('a')", "hashtext"),
        ("CREATE TABLE \"t\" (\"a\" other.text)", "text"),
    ] {
        assert_eq!(unqualified(statement).as_deref(), Some(found), "{statement}");
    }
    let well = "SELECT (\"=\" OPERATOR(pg_catalog.=) 'f(x)::text') FROM \"s\".\"t\" AS f (a) -- = f(x)";
    assert_eq!(unqualified(well), None);
}

/// Each text, of tables of every type.
fn statements() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let texts = [
        BEGIN_CLAIM,
        BEGIN_READ,
        CONFIRM,
        SERVER_TRAITS,
        TRANSACTION,
        SESSION,
        ENCODING,
        DESCRIBE_SERVER,
        DESCRIBE_TABLE,
        DESCRIBE_COLUMNS,
        DESCRIBE_INDEXES,
        DESCRIBE_DANGERS,
        FIND_SEQUENCE,
        wake::IS_LISTENING,
    ];
    let mut all: Vec<String> = texts.map(str::to_owned).into();
    let traits = ServerTraits { version: 180_000, linux: true };
    all.push(claim_settings(traits, Duration::from_secs(5), Durability::Relaxed));
    all.extend([ClaimNumber::draw().announce(), ClaimNumber::draw().commit_and_confirm()]);
    let without_headers = Columns { headers: None, ..Columns::default() };
    for table in [
        OutboxTable::default(),
        OutboxTable::prisma("OutboxMessage"),
        OutboxTable::default().with_payload_type(PayloadType::Jsonb),
        OutboxTable::new("a = b(c)").with_columns(without_headers),
    ] {
        all.extend([true, false].map(|may_select| describe_sequence(&table, "public.q", may_select)));
        all.extend([schema::create_table(&table)?, wake::notify(&table)]);
        all.extend([wake::notify_trigger_ddl(&table)?, wake::drop_notify_trigger_ddl(&table)?]);
        let marking = PostgresStatements::new(&table)?;
        for statements in [marking.clone(), marking.with_settling(&table, Settling::Delete)] {
            all.push(statements.lock_of(&TenantId::new("it's")?));
            // By name, so that a new one is not forgotten.
            let PostgresStatements {
                lock,
                lock_around: _,
                claim,
                claim_others,
                pending,
                probe,
                probe_named,
                mark,
                append,
                watermark,
            } = statements;
            let those = [lock, claim, claim_others, pending, probe, probe_named, mark, append];
            all.extend(those.iter().map(ToString::to_string));
            let WatermarkStatements { claim, claim_others, probe, probe_named, facts, writers } = watermark;
            let those = [claim, claim_others, probe, probe_named, facts, writers];
            all.extend(those.iter().map(ToString::to_string));
        }
    }
    Ok(all)
}

/// What may stand before a bracket, or before a literal, and is no function or type.
const SYNTAX: &[&str] = &[
    "ALL",
    "AND",
    "ANY",
    "AS",
    "BY",
    "CHECK",
    "COALESCE",
    "DEFAULT",
    "ELSE",
    "EPOCH",
    "EXISTS",
    "EXTRACT",
    "FROM",
    "IDENTITY",
    "IS",
    "LATERAL",
    "LIMIT",
    "OPERATOR",
    "OR",
    "OVER",
    "SELECT",
    "THEN",
    "TIMESTAMP",
    "VALUES",
    "WHERE",
    "WITH",
    "ZONE",
];
/// What compares by an operator that it does not name.
const COMPARES: &[&str] = &["BETWEEN", "ILIKE", "IN", "LIKE", "NATURAL", "NULLIF", "SIMILAR", "USING"];
/// What has a schema wherever it stands.
const TYPES: &[&str] = &[
    "BOOL",
    "BYTEA",
    "INT2",
    "INT4",
    "INT8",
    "INTERVAL",
    "JSONB",
    "NAME",
    "OID",
    "REGCLASS",
    "REGNAMESPACE",
    "TEXT",
    "TIMESTAMPTZ",
    "XID8",
];

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// In capitals, and as it is.
    Word(String, String),
    Quoted,
    Literal,
    Operator(String),
    Mark(char),
}

/// The first thing without a schema.
fn unqualified(statement: &str) -> Option<String> {
    let tokens = tokens(statement);
    let is_word = |at: Option<usize>, word: &str| matches!(at.and_then(|at| tokens.get(at)), Some(Token::Word(found, _)) if found == word);
    let is_mark =
        |at: Option<usize>, mark: char| at.and_then(|at| tokens.get(at)) == Some(&Token::Mark(mark));
    let of_the_server =
        |at: usize| is_mark(at.checked_sub(1), '.') && is_word(at.checked_sub(2), "PG_CATALOG");
    let is_ours = |at: usize| {
        let schema = at.checked_sub(2).and_then(|at| tokens.get(at));
        is_mark(at.checked_sub(1), '.') && schema == Some(&Token::Quoted)
    };
    for (at, token) in tokens.iter().enumerate() {
        let after = |word: &str| is_word(at.checked_sub(1), word);
        let well = match token {
            Token::Operator(operator) => match operator.as_str() {
                "::" => is_word(Some(at + 1), "PG_CATALOG"),
                "*" if after("SELECT") || after("DISTINCT") => true,
                "*" if is_mark(at.checked_sub(1), '(')
                    || !of_the_server(at) && is_mark(at.checked_sub(1), '.') =>
                {
                    true
                }
                "=" if is_word(at.checked_sub(2), "SET") || is_word(at.checked_sub(2), "LOCAL") => true,
                "=" if matches!(tokens.get(at - 1), Some(Token::Word(_, name)) if name.starts_with("autovacuum_")) => {
                    true
                }
                _ => of_the_server(at) && is_word(at.checked_sub(4), "OPERATOR"),
            },
            Token::Word(word, name) => {
                let word = word.as_str();
                let is_called = is_mark(Some(at + 1), '(') || tokens.get(at + 1) == Some(&Token::Literal);
                match word {
                    "CASE" => is_word(Some(at + 1), "WHEN"),
                    "DISTINCT" => !is_word(Some(at + 1), "FROM"),
                    "COLLATE" | "RETURNS" => is_word(Some(at + 1), "PG_CATALOG"),
                    "PG_CATALOG" => true,
                    _ if COMPARES.contains(&word) => after("ROWS"),
                    _ if name.starts_with("pg_") => of_the_server(at),
                    // A column may be called so, but no column stands behind the name of another one or behind AS.
                    _ if TYPES.contains(&word) => {
                        let before = at.checked_sub(3);
                        let is_type = before.and_then(|at| tokens.get(at)) == Some(&Token::Quoted)
                            || is_word(before, "AS");
                        of_the_server(at) || is_mark(at.checked_sub(1), '.') && !is_type
                    }
                    _ if is_called => {
                        SYNTAX.contains(&word) || after("AS") || of_the_server(at) || is_ours(at)
                    }
                    _ => true,
                }
            }
            Token::Quoted | Token::Literal | Token::Mark(_) => true,
        };
        if !well {
            return Some(match token {
                Token::Word(_, name) => name.clone(),
                Token::Operator(operator) => operator.clone(),
                other => format!("{other:?}"),
            });
        }
    }
    None
}

fn tokens(statement: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let while_in = |belongs: fn(char) -> bool| rest.find(|next| !belongs(next)).unwrap_or(rest.len());
        let length = match first {
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => {
                // A doubled mark is two of these side by side, which is as well.
                let token = if first == '"' { Token::Quoted } else { Token::Literal };
                if tokens.last() != Some(&token) {
                    tokens.push(token);
                }
                rest[1..].find(first).map_or(rest.len(), |end| end + 2)
            }
            'E' if rest.starts_with("E'") => 1,
            ' ' | '\n' => 1,
            '0'..='9' | '$' => while_in(|next| next.is_ascii_digit() || next == '$'),
            _ if first.is_alphabetic() => {
                let length = while_in(|next| next.is_alphanumeric() || next == '_');
                tokens.push(Token::Word(rest[..length].to_uppercase(), rest[..length].to_owned()));
                length
            }
            '(' | ')' | '[' | ']' | ',' | ';' | '.' => {
                tokens.push(Token::Mark(first));
                1
            }
            _ => {
                let length = while_in(|next| "+-*/<>=~!@#%^&|?:".contains(next)).max(first.len_utf8());
                tokens.push(Token::Operator(rest[..length].to_owned()));
                length
            }
        };
        rest = &rest[length..];
    }
    tokens
}
