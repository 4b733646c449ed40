//! Every test of a SQLite store, and where it is.

/// Puts every test of a SQLite store into a test binary, for a driver.
#[macro_export]
macro_rules! sqlite_suite {
    ($driver:ty) => {
        type SqliteDriverUnderTest = $driver;

        $crate::__sqlite_list! { __tests [sqlite sqlite SqliteDriverUnderTest] }
    };
}

/// Puts those that concern a pool into a test binary, for a driver that makes stores on one.
#[macro_export]
macro_rules! sqlite_pool_suite {
    ($driver:ty) => {
        type SqliteDriverUnderTest = $driver;

        $crate::__sqlite_pool_list! { __tests [sqlite sqlite SqliteDriverUnderTest] }
    };
}

/// The list: a folder, a file, its tests. They are in the other list, too.
#[doc(hidden)]
#[macro_export]
macro_rules! __sqlite_pool_list {
    ($each:ident $argument:tt) => {
        $crate::$each! { $argument
            faults {
                replaced:
                    a_database_replaced_while_a_message_is_published_keeps_its_own_row_pending
                    a_database_replaced_while_nothing_is_pending_turns_health_red
                    a_database_replaced_between_probe_and_claim_hands_nothing_out
                    a_store_made_on_connections_to_a_replaced_database_is_refused
                    a_database_that_comes_back_under_its_name_is_used_again;
            }
        }
    };
}

/// The list: a folder, a file, its tests.
#[doc(hidden)]
#[macro_export]
macro_rules! __sqlite_list {
    ($each:ident $argument:tt) => {
        $crate::$each! { $argument
            faults {
                access:
                    a_lock_file_has_the_mode_of_its_database
                    a_link_in_the_place_of_a_lock_file_gives_nothing_away
                    another_user_s_relay_may_lock_what_it_may_write_and_a_stranger_may_not;
                bad_input:
                    names_with_quotes_capitals_keywords_and_spaces_work
                    a_table_in_an_attached_database_works
                    a_table_that_sqlite_cannot_hold_is_refused
                    what_the_table_cannot_hold_is_refused_at_the_append
                    thousands_of_messages_at_once_get_ids_in_their_order
                    a_text_payload_column_keeps_text
                    a_text_with_a_nul_counts_whole
                    a_missing_table_is_an_error_that_says_what_to_do
                    each_missing_column_is_an_error_in_every_operation
                    each_hostile_row_stops_its_own_tenant_and_is_named
                    a_read_only_database_fails_the_claim
                    the_first_claim_does_not_wait_for_a_writer;
                read_only:
                    a_database_that_became_read_only_turns_health_red;
                links:
                    a_link_turned_to_another_database_marks_nothing_there;
                lock_file:
                    two_holders_never_both_verify_after_somebody_deleted_the_lock_file
                    a_lock_file_stays_when_its_claim_ends
                    a_child_process_that_was_started_while_a_tenant_was_held_does_not_keep_it
                    every_way_to_name_a_database_comes_to_the_same_lock
                    a_table_named_in_other_letters_is_the_same_table
                    a_lock_file_that_cannot_be_made_is_an_error_that_says_so;
                processes:
                    child
                    a_killed_holder_frees_its_tenant_at_once_and_marked_nothing
                    processes_take_turns_and_publish_everything_once_and_in_order;
                replaced:
                    a_database_replaced_while_a_message_is_published_keeps_its_own_row_pending
                    a_database_replaced_while_nothing_is_pending_turns_health_red
                    a_database_replaced_between_probe_and_claim_hands_nothing_out
                    a_store_made_on_connections_to_a_replaced_database_is_refused
                    a_database_that_comes_back_under_its_name_is_used_again;
                row_identity:
                    a_row_that_took_the_id_of_a_published_one_stays_pending
                    rows_of_every_time_are_marked;
                runtime:
                    a_claim_outside_of_a_runtime_is_an_error
                    a_store_on_a_runtime_without_a_timer_is_an_error;
            }
            store {
                check:
                    a_check_finds_what_does_not_suit
                    what_can_break_a_promise_is_found
                    the_index_that_a_check_asks_for_is_the_one_that_it_finds
                    a_journal_that_cannot_roll_back_is_an_error;
                namesakes:
                    tables_of_a_connection_s_own_hide_nothing_of_the_database;
                plans:
                    every_statement_searches_an_index_whatever_the_statistics_say;
                settle:
                    a_mark_waits_for_a_long_writer_and_keeps_the_tenant_meanwhile
                    a_mark_gives_up_when_its_time_is_over_and_frees_the_tenant
                    a_dropped_settlement_keeps_the_tenant_until_the_driver_is_through
                    a_dropped_settlement_keeps_the_tenant_on_a_runtime_of_threads_too
                    a_runtime_that_ends_during_a_settlement_does_not_free_the_tenant_either
                    fewer_rows_marked_than_given_is_an_error_that_says_so
                    the_application_writes_while_a_tenant_is_held
                    settling_deletes_exactly_the_accepted_rows;
                uncommitted:
                    a_connection_that_reads_what_is_not_committed_is_refused_in_memory
                    a_connection_that_reads_what_is_not_committed_is_refused_on_a_file
                    the_setting_is_no_matter_where_no_cache_is_shared;
            }
        }
    };
}

/// The same as functions.
#[doc(hidden)]
#[allow(missing_docs, reason = "each stands for a test")]
pub mod tests {
    pub mod sqlite {
        crate::__sqlite_list! { __functions [sqlite sqlite] }
    }
}
