-- The outbox: one row for each message, written in the transaction of the change that it tells of.
-- Times are microseconds since 1970. A row is pending while its last column is null.
CREATE TABLE "main"."outbox_message" ( -- outbox schema 1
    -- AUTOINCREMENT: an id is the deduplication key, and must not be issued again after a delete.
    "id" INTEGER PRIMARY KEY AUTOINCREMENT,
    "tenant_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "subject_id" TEXT NOT NULL,
    -- No payload is a tombstone: the subject is gone.
    "payload" BLOB,
    "headers" TEXT,
    "occurred_at" INTEGER NOT NULL
        DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000),
    "published_at" INTEGER
) STRICT;

CREATE INDEX "main"."outbox_message_pending" ON "outbox_message" ("tenant_id", "id") WHERE "published_at" IS NULL;
