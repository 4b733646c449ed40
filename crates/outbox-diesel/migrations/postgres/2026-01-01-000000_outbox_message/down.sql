DROP TABLE "public"."outbox_message";
