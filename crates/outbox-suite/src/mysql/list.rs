//! Every test of a store on MySQL or MariaDB, and where it is.

/// Puts every test of a store on MySQL or MariaDB into a test binary, for a driver.
#[macro_export]
macro_rules! mysql_suite {
    ($driver:ty) => {
        type MySqlDriverUnderTest = $driver;

        $crate::__server_list! { __tests [server mysql MySqlDriverUnderTest] }
        $crate::__mysql_list! { __tests [mysql mysql MySqlDriverUnderTest] }
    };
}

/// The list: a folder, a file, its tests.
#[doc(hidden)]
#[macro_export]
macro_rules! __mysql_list {
    ($each:ident $argument:tt) => {
        $crate::$each! { $argument
            faults {
                contact:
                    a_login_that_is_refused_says_what_to_correct
                    another_database_says_what_to_correct;
                isolation:
                    four_replicas_repeat_nothing_where_the_default_isolation_is_repeatable_read
                    four_replicas_repeat_nothing_where_the_default_isolation_is_serializable;
                start:
                    a_relay_starts_before_its_database_and_recovers_by_itself
                    a_missing_table_is_an_error_that_says_to_create_it_and_is_noticed_when_it_appears
                    a_missing_column_is_an_error_that_names_it_and_is_noticed_when_it_appears
                    a_user_that_may_not_mark_publishes_nothing_and_health_says_what_to_grant;
            }
            store {
                cancel:
                    dropped_futures_lose_no_write_of_the_application_and_leave_nothing_behind
                    a_claim_can_be_dropped_on_any_thread;
                check:
                    what_does_not_suit_the_store_is_found
                    a_table_with_system_versioning_works_and_suits;
                faults:
                    a_server_that_goes_down_loses_no_message_and_marks_none
                    a_read_only_server_refuses_the_claim_itself
                    a_server_that_locks_nothing_is_refused_before_any_claim
                    a_frozen_server_fails_operations_in_time_and_keeps_its_claims
                    a_vanished_holder_keeps_its_tenant_for_the_bound_of_silence_and_no_longer;
                guards:
                    a_claim_is_read_committed_whatever_the_default_is
                    a_connection_that_comes_back_has_the_application_s_settings
                    a_connection_that_comes_back_has_no_transaction_and_stays_whatever_follows_a_commit_there
                    a_silent_holder_loses_the_tenant_within_its_bound_and_not_before
                    a_probe_or_a_claim_without_autocommit_is_refused
                    a_read_only_session_or_user_cannot_claim;
                names:
                    names_that_need_quotes_work
                    columns_that_need_quotes_work
                    names_that_cannot_be_are_refused
                    stored_functions_of_built_in_names_change_nothing
                    a_session_in_which_an_empty_text_is_none_is_refused
                    no_setting_of_a_session_changes_what_comes_back;
                plans:
                    the_cost_grows_neither_with_what_is_published_nor_with_what_is_pending
                    a_claim_of_other_subjects_walks_past_the_excluded_rows_and_no_further
                    a_mark_waits_for_no_uncommitted_row_of_a_small_table;
                replaced:
                    a_claim_keeps_its_tables_from_being_replaced_before_its_mark;
                rows:
                    a_row_that_cannot_be_read_stops_its_tenant_alone;
                session_settings:
                    a_session_that_does_not_see_what_is_committed_is_refused;
                turns:
                    replicas_that_meet_a_tenant_without_a_row_do_not_wait_for_each_other_s_batch
                    new_tenants_are_not_in_each_other_s_way
                    a_new_tenant_is_claimed_as_soon_as_another_is_added
                    a_sentinel_that_is_kept_delays_new_tenants_alone_and_not_for_long
                    a_foreign_insert_delays_a_claim_by_its_timeout_at_most
                    a_lost_sentinel_is_an_error_that_says_so
                    a_lost_deadlock_is_transient_and_frees_the_tenant;
            }
        }
    };
}

/// The same as functions.
#[doc(hidden)]
#[allow(missing_docs, reason = "each stands for a test")]
pub mod tests {
    pub mod server {
        crate::__server_list! { __functions [server mysql] }
    }
    pub mod mysql {
        crate::__mysql_list! { __functions [mysql mysql] }
    }
}
