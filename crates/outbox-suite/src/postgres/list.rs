//! Every test of a store on PostgreSQL, and where it is.

/// Puts every test of a store on PostgreSQL into a test binary, for a driver.
#[macro_export]
macro_rules! postgres_suite {
    ($driver:ty) => {
        type PostgresDriverUnderTest = $driver;

        $crate::__server_list! { __tests [server postgres PostgresDriverUnderTest] }
        $crate::__postgres_list! { __tests [postgres postgres PostgresDriverUnderTest] }
    };
}

/// The list: a folder, a file, its tests.
#[doc(hidden)]
#[macro_export]
macro_rules! __postgres_list {
    ($each:ident $argument:tt) => {
        $crate::$each! { $argument
            faults {
                contact:
                    a_login_that_is_refused_says_what_to_correct
                    another_database_says_what_to_correct
                    a_database_without_an_encoding_is_refused_by_the_first_probe_and_by_check
                    a_queue_of_notifications_that_nobody_reads_is_told_by_check;
                durability:
                    a_crash_of_the_server_takes_relaxed_marks_back_and_loses_nothing;
                locks:
                    a_table_lock_asked_for_during_a_publish_waits_for_the_mark_and_repeats_nothing
                    a_table_locked_during_the_mark_costs_that_batch_published_again
                    looking_at_a_held_tenant_many_times_takes_no_further_connection
                    a_cancelled_settlement_does_not_keep_the_tenant_locked_in_the_pool
                    a_relay_process_frozen_as_the_rows_of_its_claim_arrive_publishes_none_of_them;
                read_only:
                    a_relay_on_a_standby_publishes_nothing_until_the_promotion
                    another_server_is_told_of_and_is_not_red
                    a_read_only_default_does_not_keep_a_claim_from_marking;
                rights:
                    a_role_that_may_not_mark_publishes_nothing_and_health_says_what_to_grant
                    row_security_that_hides_the_mark_costs_one_batch_a_back_off_and_health_says_why
                    row_security_that_hides_every_row_is_found_by_check;
                rows:
                    an_infinite_timestamp_stops_its_tenant_only_and_health_names_the_row
                    headers_that_are_no_object_stop_their_tenant_only_and_health_names_the_row
                    a_kind_that_is_null_stops_its_tenant_only_and_health_names_the_row
                    a_subject_that_is_null_stops_its_tenant_only_and_health_names_the_row
                    a_large_payload_and_a_long_tenant_go_through
                    clocks_and_time_zones_that_disagree_change_nothing
                    names_that_need_quotes_reach_the_right_table;
                settings:
                    replicas_republish_nothing_where_the_default_isolation_is_repeatable_read
                    replicas_republish_nothing_where_the_default_isolation_is_serializable
                    a_publish_outlives_the_limit_on_idle_transactions
                    a_publish_outlives_the_limit_on_transactions
                    limits_on_statements_and_lock_waits_do_not_disturb_a_slow_publish
                    a_claim_asks_the_server_to_find_a_dead_client_within_a_minute;
                start:
                    a_relay_starts_before_its_database_and_recovers_by_itself
                    a_missing_table_is_an_error_that_says_to_create_it_and_is_noticed_when_it_appears
                    a_missing_column_is_an_error_that_names_it_and_is_noticed_when_it_appears
                    a_database_that_refuses_connections_is_asked_ever_less_often_and_used_again_when_it_returns;
            }
            store {
                bad_input:
                    a_missing_table_is_named
                    a_missing_column_is_named
                    a_role_that_cannot_mark_claims_nothing
                    marks_that_a_trigger_swallows_are_an_error
                    a_commit_that_fails_is_an_error
                    a_commit_that_is_answered_by_a_rollback_is_an_error
                    marks_that_row_security_forbids_are_an_error
                    an_unreachable_server_is_a_transient_error;
                cancel:
                    a_future_dropped_while_an_answer_is_outstanding_leaves_nothing_in_the_pool
                    a_future_dropped_after_any_number_of_polls_leaves_nothing_behind
                    a_mark_that_waits_for_a_locked_table_ends_with_the_timeout
                    waiting_for_the_pool_ends_with_the_timeout;
                check:
                    nothing_is_found_about_a_table_of_our_own_making
                    the_table_of_the_pasted_prisma_model_suits_the_store
                    each_fault_of_a_table_is_found
                    a_wrong_description_is_found
                    what_can_break_a_promise_is_found
                    what_breaks_no_promise_is_not_told_of
                    a_read_only_default_is_found;
                guards:
                    a_claim_is_read_committed_where_the_default_is_repeatable_read
                    a_claim_is_read_committed_where_the_default_is_serializable
                    a_claim_is_read_write_where_the_default_is_read_only
                    a_claim_lifts_the_timeout_of_idle_transactions
                    a_claim_bounds_what_outlives_its_client
                    the_lock_dies_with_the_transaction_and_not_before
                    a_claim_that_gets_its_lock_late_reads_after_it
                    a_claim_dropped_inside_its_transaction_does_not_poison_the_pool
                    a_dropped_claim_does_not_poison_the_pool
                    a_claim_can_be_dropped_on_any_thread
                    a_claim_outside_of_a_runtime_is_an_error
                    a_commit_is_confirmed_by_the_claim_s_own_transaction_alone;
                names:
                    names_that_need_quotes_work
                    columns_that_need_quotes_work
                    names_that_cannot_be_are_refused;
                reading:
                    hostile_rows_stop_their_tenant_and_are_named
                    a_batch_is_bounded_in_bytes_and_never_empty
                    large_payloads_and_odd_times_come_back_as_written;
                replaced:
                    a_claim_keeps_its_table_from_being_replaced_before_its_mark;
                search_path:
                    a_function_of_the_application_s_does_not_change_a_tenant_s_key
                    a_trigger_of_the_application_s_runs_with_the_session_s_own_search_path
                    nothing_of_the_server_s_own_is_found_through_the_search_path;
                settling:
                    settling_deletes_exactly_the_accepted_rows
                    deleting_spares_what_somebody_else_marked_and_says_so
                    who_may_not_delete_cannot_claim_to_delete
                    a_relaxed_claim_relaxes_nothing_but_itself;
                statistics:
                    a_thousand_claims_are_no_more_entries_of_pg_stat_statements_than_ten;
                turns:
                    the_lock_keys_are_the_golden_ones
                    a_tenant_with_any_name_holds_its_own_key
                    tenants_with_one_key_take_turns
                    the_typescript_relay_and_ours_take_turns
                    tables_of_one_name_in_two_schemas_are_two_outboxes
                    the_applications_advisory_locks_are_not_disturbed;
                watermark:
                    a_lower_id_that_commits_late_is_handed_out_next
                    no_safe_id_is_taken_while_a_writer_is_open_or_prepared
                    an_id_drawn_by_hand_is_found_by_the_next_look_from_zero
                    a_claim_that_finds_nothing_looks_from_zero_next_time
                    a_row_made_pending_again_is_found_within_the_interval
                    a_claim_of_other_subjects_begins_at_the_watermark_and_raises_none
                    what_was_not_settled_is_handed_out_again
                    a_killed_session_forgets
                    a_table_that_does_not_suit_is_refused_with_what_to_do
                    a_store_that_deletes_and_its_clones_share_the_watermark
                    a_sequence_that_was_set_back_has_a_safe_id_of_its_own
                    a_claim_of_other_subjects_is_no_look_from_zero;
            }
        }
    };
}

/// The same as functions.
#[doc(hidden)]
#[allow(missing_docs, reason = "each stands for a test")]
pub mod tests {
    pub mod server {
        crate::__server_list! { __functions [server postgres] }
    }
    pub mod postgres {
        crate::__postgres_list! { __functions [postgres postgres] }
    }
}
