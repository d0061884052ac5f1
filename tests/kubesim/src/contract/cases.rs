//! The table of cases. A test compares it with the functions of the suite.

use super::{
    Case, Needs, access, applies, creates, deletes, discovery, jobs, leases, limits, lists, logs,
    watches, writes,
};

/// The cases of each module, by what they need.
macro_rules! cases {
    ($($module:ident, $needs:ident: $($name:ident),+;)+) => {
        &[$($(Case {
            name: concat!(stringify!($module), "::", stringify!($name)),
            needs: Needs::$needs,
            run: |arena| Box::pin($module::$name(arena)),
        }),+),+]
    };
}

/// Every case of the contract.
pub const CASES: &[Case] = cases! {
    access, Roles:
        what_no_role_allows_is_forbidden,
        a_role_allows_in_the_namespace_of_its_binding,
        a_cluster_role_bound_in_a_namespace_ends_there,
        a_missing_role_is_told_in_the_refusal,
        reviews_answer_as_requests_do,
        documents_are_for_who_is_known,
        users_are_impersonated_by_who_may;
    applies, Nothing:
        an_apply_owns_what_it_sets,
        applied_finalizers_are_a_set,
        an_apply_of_the_status_sets_the_status_alone,
        an_apply_with_a_uid_means_that_object,
        a_merge_with_a_uid_means_that_object;
    creates, Nothing:
        a_new_object_is_completed,
        a_taken_name_is_refused,
        names_are_generated,
        bad_names_are_invalid,
        a_namespace_must_exist,
        bodies_are_of_the_kind_of_the_path;
    deletes, Nothing:
        preconditions_must_hold,
        a_deletion_tells_what_went,
        finalizers_hold_a_deletion,
        a_deletion_has_a_version,
        collections_are_deleted_by_selector,
        options_come_in_the_query_too;
    deletes, Controllers:
        dependents_go_with_their_owner,
        orphans_stay,
        a_foreground_deletion_waits_for_dependents,
        a_namespace_goes_with_its_content;
    discovery, Nothing:
        discovery_finds_the_kinds,
        aggregated_discovery_finds_the_kinds,
        unknown_kinds_are_not_found,
        a_server_tells_its_version;
    jobs, Nothing:
        a_job_says_how_its_pods_restart;
    leases, Nothing:
        a_lease_is_renewed_by_one,
        events_are_found_by_what_they_are_about,
        events_are_checked;
    limits, Nothing:
        bodies_and_objects_are_bounded,
        annotations_are_bounded,
        names_of_finalizers_and_managers_are_checked;
    lists, Nothing:
        a_watch_goes_on_where_a_list_ended,
        pages_show_one_snapshot,
        a_page_counts_what_remains,
        a_made_up_token_is_refused,
        label_selectors_choose,
        field_selectors_choose,
        a_version_from_the_future_times_out,
        metadata_can_be_read_alone,
        a_missing_object_is_not_found;
    lists, Forgetting:
        a_forgotten_page_is_gone;
    logs, Nothing:
        a_missing_pod_has_no_log,
        a_container_must_be_named,
        a_pod_without_a_node_has_no_log_yet,
        options_of_logs_are_checked;
    watches, Nothing:
        a_watch_from_nowhere_begins_with_what_is_there,
        a_selector_turns_changes_into_comings_and_goings,
        a_watch_can_be_of_one_name,
        a_forgotten_version_is_expired,
        a_watch_ends_in_time_with_a_bookmark,
        bookmarks_come_only_to_who_allows_them,
        a_watch_can_be_of_metadata,
        a_streaming_list_marks_its_end,
        a_version_is_a_number;
    writes, Nothing:
        a_stale_update_conflicts,
        an_update_of_another_uid_conflicts,
        a_write_that_changes_nothing_is_none,
        server_fields_are_kept,
        merge_patches_merge,
        json_patches_test_and_set,
        custom_kinds_take_no_strategic_patches,
        status_is_written_apart,
        empty_metadata_is_none,
        without_the_subresource_status_is_a_field,
        a_dry_run_changes_nothing;
};
