//! What a probe asks, and what it makes of the answer.

use std::sync::Arc;

use outbox_core::{OldestPending, ProbeRequest, StoreError, TenantId};

use super::PostgresStatements;
use super::watermark::{ProbeStart, Watermarks};
use crate::named::{Look, Named};

/// A probe, from the request to the answer.
#[derive(Debug)]
pub struct Probing<'a> {
    look: Look<'a>,
    start: Option<(&'a Watermarks, ProbeStart)>,
}

/// A statement, and what is to be bound to it: first these tenants, then these ids.
#[derive(Debug)]
pub struct Question<'a> {
    /// The statement.
    pub statement: &'a Arc<str>,
    /// `None` if it has no such parameter.
    pub tenants: Option<Vec<&'a str>>,
    /// `None` if it has no such parameter.
    pub ids: Option<&'a [i64]>,
}

impl<'a> Probing<'a> {
    /// Begins. To be called before anything is sent.
    ///
    /// # Errors
    /// As [`Look::of`].
    pub fn new(request: &'a ProbeRequest, watermarks: Option<&'a Watermarks>) -> Result<Self, StoreError> {
        let look = Look::of(&request.tenants)?;
        let start = watermarks.map(|watermarks| (watermarks, watermarks.start_probe(look.one_by_one)));
        Ok(Self { look, start })
    }

    /// What is to be sent.
    pub fn question<'q>(&'q self, statements: &'q PostgresStatements) -> Question<'q> {
        let start = self.start.as_ref().map(|(_, start)| start).filter(|start| start.passes_over());
        match (start, self.look.one_by_one) {
            (Some(start), one_by_one) => {
                let PostgresStatements { watermark, .. } = statements;
                let statement = if one_by_one.is_some() { &watermark.probe_named } else { &watermark.probe };
                Question { statement, tenants: Some(texts(&start.tenants)), ids: Some(&start.ids) }
            }
            (None, Some(tenants)) => {
                Question { statement: &statements.probe_named, tenants: Some(texts(tenants)), ids: None }
            }
            (None, None) => Question { statement: &statements.probe, tenants: None, ids: None },
        }
    }

    /// Takes in what was found, and answers what was asked for.
    pub fn answer(self, mut found: Vec<OldestPending>, named: &Named) -> Vec<OldestPending> {
        if let Some((watermarks, start)) = &self.start {
            watermarks.probed(start, &found);
        }
        if let Some(tenants) = self.look.kept {
            named.keep(tenants, &mut found);
        }
        found
    }
}

fn texts(tenants: &[TenantId]) -> Vec<&str> {
    tenants.iter().map(TenantId::as_str).collect()
}
