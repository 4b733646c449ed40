-- The transactional outbox. A row is a message that its application's transaction committed; it is pending while
-- its last column is null. The first column is the order and, with the table's name, the deduplication key.
-- Tenant and subject are bytes, which compare as such: collations of text ignore spaces at the end. Times are in
-- UTC.
CREATE TABLE `outbox_message` (
    `id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    `tenant_id` varbinary(255) NOT NULL CHECK (octet_length(`tenant_id`) > 0),
    `kind` varchar(255) NOT NULL,
    `subject_id` varbinary(1024) NOT NULL,
    `payload` longblob NULL,
    `headers` json NULL CHECK (json_valid(`headers`) AND json_type(`headers`) = 'OBJECT'),
    `occurred_at` datetime(6) NOT NULL DEFAULT (utc_timestamp(6)),
    `published_at` datetime(6) NULL,
    -- What is pending comes first, by tenant and in order: claims and the probe read that and nothing else.
    INDEX `outbox_pending` (`published_at`, `tenant_id`, `id`)
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC, DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, COMMENT = 'outbox schema 1';

-- A claim locks its tenant's row here. Whoever adds a row locks the empty one.
CREATE TABLE `outbox_message_claims` (
    `tenant_id` varbinary(255) NOT NULL PRIMARY KEY
) ENGINE = InnoDB, ROW_FORMAT = DYNAMIC, COMMENT = 'outbox schema 1';

INSERT INTO `outbox_message_claims` (`tenant_id`) VALUES (x'');
