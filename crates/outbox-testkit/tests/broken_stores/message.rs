//! What is read, with one thing wrong in it.

use std::time::Duration;

use outbox_core::{Headers, MessageId, OldestPending, OutboxMessage, Payload, TenantId, Timestamp};
use outbox_memory::MemoryStore;

use crate::defect::Defect;
use crate::store::without_sign;

/// Reads a message wrongly.
pub(crate) fn alter(defect: Defect, message: &mut OutboxMessage) {
    match defect {
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the defect")]
        Defect::IdsAreFloats => message.id = MessageId::new(message.id.get() as f64 as i64),
        Defect::SubjectsAreTrimmed => message.subject_id = message.subject_id.trim_end().to_owned(),
        Defect::PayloadsAreText if message.payload_len() < 1_000 => {
            let text = |payload: &Payload| String::from_utf8_lossy(payload.as_bytes()).into_owned().into();
            message.payload = message.payload.as_ref().map(text);
        }
        Defect::TombstonesAreEmpty => message.payload = Some(message.payload.clone().unwrap_or("".into())),
        Defect::LargePayloadsAreCut => {
            let cut = |payload: &Payload| payload.as_bytes()[..payload.len().min(8_000_000)].into();
            message.payload = message.payload.as_ref().map(cut);
        }
        Defect::HeadersFoldCase => {
            let folded = message.headers.iter().map(|(name, value)| (name.to_lowercase(), value.to_owned()));
            message.headers = folded.collect::<Headers>();
        }
        Defect::TimesAreMilliseconds => {
            let micros = message.occurred_at.as_micros();
            message.occurred_at = Timestamp::from_micros(micros - micros.rem_euclid(1_000));
        }
        _ => {}
    }
}

/// Answers a probe wrongly.
pub(crate) fn alter_probe(
    defect: Defect,
    store: &MemoryStore,
    named: &[TenantId],
    again: usize,
    found: &mut Vec<OldestPending>,
) {
    let later = |oldest: &OldestPending| {
        let mine = |message: &OutboxMessage| message.tenant_id == oldest.tenant_id;
        store.unpublished().into_iter().filter(mine).collect::<Vec<_>>()
    };
    match defect {
        Defect::ProbeDropsTheThird => found.truncate(if named.len() == 3 { 2 } else { found.len() }),
        Defect::ProbeAnswersForTheIdle if named.len() == 3 && found.len() == 1 => {
            let (id, time) = (found[0].id, Timestamp::from_micros(0));
            found.push(OldestPending::new(named[1].clone(), id, time, Duration::ZERO));
        }
        Defect::ProbeFindsAsciiOnly if named.is_empty() => {
            found.retain(|oldest| oldest.tenant_id.as_str().is_ascii());
        }
        Defect::ProbeTakesTheSmallestTime => {
            for oldest in found {
                let smallest =
                    later(oldest).into_iter().min_by_key(|message| (message.occurred_at, message.id));
                if let (Some(message), Some(time)) = (smallest, &mut oldest.time) {
                    (oldest.id, time.occurred_at) = (message.id, message.occurred_at);
                }
            }
        }
        Defect::ProbeAgeHasNoSign => {
            let times = found.iter_mut().filter_map(|oldest| oldest.time.as_mut());
            times.for_each(|time| time.age = without_sign(time.age));
        }
        Defect::ProbeAgeIsZero => {
            let times = found.iter_mut().filter_map(|oldest| oldest.time.as_mut());
            times.for_each(|time| time.age = Duration::ZERO);
        }
        Defect::ProbeForgets if again >= 2 => {
            for oldest in found {
                if let Some(message) = later(oldest).get(1) {
                    oldest.id = message.id;
                }
            }
        }
        _ => {}
    }
}
