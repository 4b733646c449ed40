//! What a message must be so that the database can hold it: checked at the append, where the application can
//! still do something about it, and not when the relay comes to it.

use std::error::Error;

use outbox_core::text::{MAX_NAME, MAX_REASON, one_line};
use outbox_core::{MessageId, NewMessage, Timestamp};

mod error;

pub use self::error::AppendError;
use crate::dialect::Dialect;
use crate::table::{OutboxTable, PayloadType};

/// What a database can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest tenant id, in bytes; `None` is no bound.
    pub max_tenant_bytes: Option<usize>,
    /// The longest kind, in characters; `None` is no bound.
    pub max_kind_characters: Option<usize>,
    /// The longest subject id, in bytes; `None` is no bound.
    pub max_subject_bytes: Option<usize>,
    /// Whether a text may have a NUL character.
    pub nul: bool,
    /// The earliest time.
    pub earliest: Timestamp,
    /// The latest time.
    pub latest: Timestamp,
}

impl Dialect {
    /// What this database can hold.
    pub const fn limits(self) -> Limits {
        let (earliest, latest) = (Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX));
        match self {
            // What the columns of the DDL hold, and the times that MySQL supports.
            Self::MySql => Limits {
                max_tenant_bytes: Some(255),
                max_kind_characters: Some(255),
                max_subject_bytes: Some(1_024),
                nul: true,
                earliest: Timestamp::from_micros(-30_610_224_000_000_000),
                latest: Timestamp::from_micros(253_402_300_799_999_999),
            },
            // An index entry is at most 2,704 bytes, with its header, the id and padding; times begin at
            // Julian day 0 (4714-11-24 BC), and are read up to the last whole year that fits 64 bits.
            Self::Postgres => Limits {
                max_tenant_bytes: Some(2_600),
                max_kind_characters: None,
                max_subject_bytes: None,
                nul: false,
                earliest: Timestamp::from_micros(-210_866_803_200_000_000),
                latest: Timestamp::from_micros(9_223_371_244_799_999_999),
            },
            Self::Sqlite => Limits {
                max_tenant_bytes: None,
                max_kind_characters: None,
                max_subject_bytes: None,
                nul: false,
                earliest,
                latest,
            },
        }
    }
}

/// Why a message cannot be appended to this table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidMessage {
    /// A text has a NUL character, which the database cannot hold.
    #[error("the {part} contains a NUL character, which the database cannot hold")]
    Nul {
        /// Which text: `kind`, `subject id`, `header` or `payload`.
        part: &'static str,
    },
    /// The tenant id does not fit an entry of the index.
    #[error("the tenant id has {bytes} bytes; an entry of the index holds at most {max}")]
    TenantTooLong {
        /// How many bytes it has.
        bytes: usize,
        /// How many fit.
        max: usize,
    },
    /// The kind or the subject id does not fit its column.
    #[error("the {part} has {length} {unit}; the column holds at most {max}")]
    TooLong {
        /// Which text: `kind` or `subject id`.
        part: &'static str,
        /// How long it is.
        length: usize,
        /// Of what: `characters` or `bytes`.
        unit: &'static str,
        /// How many fit.
        max: usize,
    },
    /// The message has headers, and the table has no column for them.
    #[error("the message has headers, and the table {} has no column for them", one_line(table, MAX_NAME))]
    NoHeadersColumn {
        /// Which table.
        table: String,
    },
    /// The payload column holds text, and the payload is not UTF-8.
    #[error("the payload is not UTF-8, and the column holds text: {reason}")]
    PayloadNotText {
        /// Where it is not.
        reason: std::str::Utf8Error,
    },
    /// The payload column holds JSON, and the payload is not JSON.
    #[error("the payload is not JSON, and the column holds JSON: {}", one_line(reason, MAX_REASON))]
    PayloadNotJson {
        /// Where it is not.
        reason: String,
    },
    /// The database has no such time.
    #[error("the time of {micros} microseconds since 1970 is outside of what the database can hold")]
    TimeOutOfRange {
        /// The time.
        micros: i64,
    },
}

/// Whether this table can hold this message as it is.
///
/// # Errors
/// [`InvalidMessage`] says why not.
pub fn check(message: &NewMessage, table: &OutboxTable, dialect: Dialect) -> Result<(), InvalidMessage> {
    let limits = dialect.limits();
    let nul_free = |part, text: &str| {
        if !limits.nul && text.contains('\0') { Err(InvalidMessage::Nul { part }) } else { Ok(()) }
    };
    let fits = |part, length, unit, max: Option<usize>| match max {
        Some(max) if length > max => Err(InvalidMessage::TooLong { part, length, unit, max }),
        _ => Ok(()),
    };
    let bytes = message.tenant_id.as_str().len();
    if let Some(max) = limits.max_tenant_bytes.filter(|max| bytes > *max) {
        return Err(InvalidMessage::TenantTooLong { bytes, max });
    }
    fits("kind", message.kind.chars().count(), "characters", limits.max_kind_characters)?;
    fits("subject id", message.subject_id.len(), "bytes", limits.max_subject_bytes)?;
    nul_free("kind", &message.kind)?;
    nul_free("subject id", &message.subject_id)?;
    if !message.headers.is_empty() && table.columns().headers.is_none() {
        return Err(InvalidMessage::NoHeadersColumn { table: table.display_name(dialect) });
    }
    for (name, value) in message.headers.iter() {
        nul_free("header", name)?;
        nul_free("header", value)?;
    }
    if let Some(time) = message.occurred_at.filter(|time| *time < limits.earliest || *time > limits.latest) {
        return Err(InvalidMessage::TimeOutOfRange { micros: time.as_micros() });
    }
    let Some(payload) = &message.payload else { return Ok(()) };
    if table.payload_type() == PayloadType::Bytes {
        return Ok(());
    }
    let text = payload.as_str().map_err(|reason| InvalidMessage::PayloadNotText { reason })?;
    nul_free("payload", text)?;
    if table.payload_type() == PayloadType::Jsonb {
        serde_json::from_str::<serde_json::Value>(text)
            .map_err(|error| InvalidMessage::PayloadNotJson { reason: error.to_string() })?;
        if escapes_nul(text) {
            return Err(InvalidMessage::Nul { part: "payload" });
        }
    }
    Ok(())
}

/// Whether this table can hold all of these messages as they are.
///
/// # Errors
/// [`AppendError::Invalid`] says which one it cannot hold, and why.
pub fn check_all<E: Error + 'static>(
    messages: &[NewMessage],
    table: &OutboxTable,
    dialect: Dialect,
) -> Result<(), AppendError<E>> {
    messages.iter().enumerate().try_for_each(|(index, message)| {
        check(message, table, dialect).map_err(|reason| AppendError::Invalid { index, reason })
    })
}

/// The ids of so many messages, as the database answered them.
///
/// # Errors
/// [`AppendError::Skipped`], if there are fewer.
pub fn all_appended<E: Error + 'static>(
    given: usize,
    ids: impl IntoIterator<Item = i64>,
) -> Result<Vec<MessageId>, AppendError<E>> {
    let ids: Vec<MessageId> = ids.into_iter().map(MessageId::new).collect();
    if ids.len() == given { Ok(ids) } else { Err(AppendError::Skipped { given, appended: ids.len() }) }
}

/// Whether a valid JSON text writes a NUL as `\u0000`, which `jsonb` cannot hold.
fn escapes_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(at, _)| {
        // An odd number of backslashes before it has this one escaped: six characters, no NUL.
        let before = json.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        before % 2 == 0
    })
}

#[cfg(test)]
mod tests {
    use outbox_core::{InvalidTenantId, TenantId};

    use super::*;

    fn message(payload: &str) -> Result<NewMessage, InvalidTenantId> {
        Ok(NewMessage::new(TenantId::new("acme")?, "kind", "subject", payload))
    }

    fn refusal(message: &NewMessage, table: &OutboxTable) -> Option<InvalidMessage> {
        check(message, table, Dialect::Postgres).err()
    }

    #[test]
    fn a_nul_is_refused_in_text_and_kept_in_bytes() -> Result<(), InvalidTenantId> {
        let (bytes, text) = (OutboxTable::default(), OutboxTable::prisma("OutboxMessage"));
        let nul = |part| Some(InvalidMessage::Nul { part });
        assert_eq!(refusal(&message("a\0b")?, &bytes), None);
        assert_eq!(refusal(&message("a\0b")?, &text), nul("payload"));
        assert_eq!(refusal(&message("")?.with_header("a", "\0"), &bytes), nul("header"));
        let mut named = message("")?;
        named.kind = "\0".into();
        assert_eq!(refusal(&named, &bytes), nul("kind"));
        Ok(())
    }

    #[test]
    fn mysql_takes_a_nul_in_text_and_what_fits_the_columns() -> Result<(), InvalidTenantId> {
        let table = OutboxTable::default().with_payload_type(PayloadType::Text);
        let refusal = |message: &NewMessage| check(message, &table, Dialect::MySql).err();
        let mut long = message("a\0b")?;
        (long.kind, long.subject_id) = ("é".repeat(255), "é".repeat(512));
        assert_eq!(refusal(&long), None);
        let too_long = |part, length, unit, max| Some(InvalidMessage::TooLong { part, length, unit, max });
        long.subject_id.push('s');
        assert_eq!(refusal(&long), too_long("subject id", 1_025, "bytes", 1_024));
        long.kind.push('k');
        assert_eq!(refusal(&long), too_long("kind", 256, "characters", 255));
        let early = message("")?.with_occurred_at(Timestamp::from_micros(-30_610_224_000_000_001));
        assert!(matches!(refusal(&early), Some(InvalidMessage::TimeOutOfRange { .. })));
        Ok(())
    }

    #[test]
    fn json_with_an_escaped_nul_is_refused_and_the_six_characters_are_not() -> Result<(), InvalidTenantId> {
        let table = OutboxTable::default().with_payload_type(PayloadType::Jsonb);
        assert_eq!(refusal(&message(r#""\u0000""#)?, &table), Some(InvalidMessage::Nul { part: "payload" }));
        assert_eq!(refusal(&message(r#""\\u0000""#)?, &table), None);
        assert!(matches!(refusal(&message("{")?, &table), Some(InvalidMessage::PayloadNotJson { .. })));
        Ok(())
    }

    #[test]
    fn headers_need_a_column() -> Result<(), InvalidTenantId> {
        let refused = refusal(&message("")?.with_header("a", "b"), &OutboxTable::prisma("OutboxMessage"));
        let table = "public.outboxMessage".to_owned();
        assert_eq!(refused, Some(InvalidMessage::NoHeadersColumn { table }));
        Ok(())
    }

    #[test]
    fn a_time_before_the_database_s_first_is_refused() -> Result<(), InvalidTenantId> {
        let early = message("")?.with_occurred_at(Timestamp::from_micros(-210_866_803_200_000_001));
        assert!(matches!(
            refusal(&early, &OutboxTable::default()),
            Some(InvalidMessage::TimeOutOfRange { .. })
        ));
        assert_eq!(check(&early, &OutboxTable::default(), Dialect::Sqlite), Ok(()));
        Ok(())
    }

    #[test]
    fn a_tenant_that_fits_no_index_entry_is_refused() -> Result<(), InvalidTenantId> {
        let mut long = message("")?;
        long.tenant_id = TenantId::new("t".repeat(2_601))?;
        let refused = refusal(&long, &OutboxTable::default());
        assert_eq!(refused, Some(InvalidMessage::TenantTooLong { bytes: 2_601, max: 2_600 }));
        Ok(())
    }
}
