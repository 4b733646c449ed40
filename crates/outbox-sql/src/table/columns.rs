//! What the columns of a table are called.

/// The names of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Columns {
    /// The sequence, the order and, with the source, the deduplication key. Default `id`.
    pub id: String,
    /// Whose message it is. Default `tenant_id`.
    pub tenant_id: String,
    /// What sort of message it is. Default `kind`.
    pub kind: String,
    /// Which thing it is about. Default `subject_id`.
    pub subject_id: String,
    /// The content. Default `payload`.
    pub payload: String,
    /// What travels with the message; `None` for a table that has no such column. Default `headers`.
    pub headers: Option<String>,
    /// When it happened. Default `occurred_at`.
    pub occurred_at: String,
    /// When it was marked; null is pending. Default `published_at`.
    pub published_at: String,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            id: "id".into(),
            tenant_id: "tenant_id".into(),
            kind: "kind".into(),
            subject_id: "subject_id".into(),
            payload: "payload".into(),
            headers: Some("headers".into()),
            occurred_at: "occurred_at".into(),
            published_at: "published_at".into(),
        }
    }
}

impl Columns {
    /// The columns as a Prisma model names them: `tenantId`, `subjectId`, `occurredAt`, `publishedAt`, and
    /// no headers.
    pub fn camel_case() -> Self {
        Self {
            tenant_id: "tenantId".into(),
            subject_id: "subjectId".into(),
            headers: None,
            occurred_at: "occurredAt".into(),
            published_at: "publishedAt".into(),
            ..Self::default()
        }
    }

    /// What each column is for, and its name, in the order of the table.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let headers = self.headers.as_deref().map(|name| ("headers", name));
        [
            ("id", self.id.as_str()),
            ("tenant_id", &self.tenant_id),
            ("kind", &self.kind),
            ("subject_id", &self.subject_id),
            ("payload", &self.payload),
        ]
        .into_iter()
        .chain(headers)
        .chain([("occurred_at", self.occurred_at.as_str()), ("published_at", &self.published_at)])
    }
}
