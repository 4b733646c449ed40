DROP TABLE `outbox_message_claims`;
DROP TABLE `outbox_message`;
