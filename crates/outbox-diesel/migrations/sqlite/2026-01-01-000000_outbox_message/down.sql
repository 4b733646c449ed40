DROP TABLE "main"."outbox_message";
