//! Every test that the stores of both servers are put through, and where it is.

/// The list: a folder, a file, its tests.
#[doc(hidden)]
#[macro_export]
macro_rules! __server_list {
    ($each:ident $argument:tt) => {
        $crate::$each! { $argument
            faults {
                cancellation:
                    a_thousand_dropped_futures_lose_no_write_of_the_application_and_leave_nothing_behind
                    dropped_runs_of_the_relay_lose_nothing_repeat_nothing_and_leave_nothing_behind;
                network:
                    a_probe_on_a_half_open_socket_fails_in_time_and_recovers
                    a_claim_on_a_half_open_socket_gives_its_place_back_and_the_other_takes_over
                    a_publish_over_a_half_open_socket_is_the_holders_last
                    a_settlement_on_a_half_open_socket_gives_its_place_back_and_the_other_takes_over
                    a_commit_that_is_lost_repeats_its_batch_and_one_whose_answer_is_lost_repeats_nothing;
                order:
                    a_lower_id_that_commits_later_is_published_and_never_skipped
                    a_lower_id_that_is_rolled_back_holds_nothing_back_and_is_never_seen
                    a_wake_after_a_commit_lets_nothing_overtake_what_a_crash_left
                    no_replica_publishes_past_a_refused_message
                    replicas_share_many_tenants_without_a_duplicate
                    replicas_that_come_and_go_never_publish_a_tenant_at_once
                    an_abandoned_write_transaction_stops_no_tenant;
                orderings:
                    subjects_keep_their_order_and_a_refused_one_keeps_nobody_else
                    slices_keep_the_tenants_order_and_repeat_nothing
                    a_pipeline_loses_nothing_and_ends_in_order;
                pools:
                    a_pool_of_one_connection_publishes_everything
                    a_pool_of_two_connections_publishes_everything
                    a_pool_of_six_connections_has_room_for_the_default_concurrency
                    a_relay_on_one_connection_stops_in_the_middle_of_a_publish
                    a_concurrency_that_the_pool_cannot_hold_is_refused;
                processes:
                    other_process
                    a_killed_relay_process_is_taken_over_at_once_and_only_its_batch_is_repeated
                    a_frozen_relay_process_notices_on_waking_that_it_lost_the_tenant;
                sessions:
                    a_terminated_holder_emits_no_more_than_the_message_it_was_in_and_the_other_takes_over_at_once
                    what_was_accepted_after_the_session_was_terminated_is_published_again_once
                    a_server_restart_mid_batch_loses_nothing_and_the_relay_recovers_by_itself
                    a_server_crash_mid_batch_loses_nothing_and_the_relay_recovers_by_itself
                    a_pool_that_retires_connections_takes_none_from_a_claim;
            }
        }
    };
}
