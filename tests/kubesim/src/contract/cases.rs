//! The table of cases. A test compares it with the functions of the suite.

use super::{
    Case, Needs, access, applies, deletes, discovery, leases, limits, lists, watches, writes,
};

macro_rules! case {
    ($needs:ident, $module:ident::$name:ident) => {
        Case {
            name: concat!(stringify!($module), "::", stringify!($name)),
            needs: Needs::$needs,
            run: |arena| Box::pin($module::$name(arena)),
        }
    };
}

/// Every case of the contract.
pub const CASES: &[Case] = &[
    case!(Roles, access::what_no_role_allows_is_forbidden),
    case!(Roles, access::a_role_allows_in_the_namespace_of_its_binding),
    case!(
        Roles,
        access::a_cluster_role_bound_in_a_namespace_ends_there
    ),
    case!(Roles, access::a_missing_role_is_told_in_the_refusal),
    case!(Roles, access::reviews_answer_as_requests_do),
    case!(Roles, access::documents_are_for_who_is_known),
    case!(Roles, access::users_are_impersonated_by_who_may),
    case!(Nothing, applies::an_apply_owns_what_it_sets),
    case!(Nothing, applies::applied_finalizers_are_a_set),
    case!(
        Nothing,
        applies::an_apply_of_the_status_sets_the_status_alone
    ),
    case!(Nothing, deletes::preconditions_must_hold),
    case!(Nothing, deletes::a_deletion_tells_what_went),
    case!(Nothing, deletes::finalizers_hold_a_deletion),
    case!(Nothing, deletes::a_deletion_has_a_version),
    case!(Controllers, deletes::dependents_go_with_their_owner),
    case!(Controllers, deletes::orphans_stay),
    case!(
        Controllers,
        deletes::a_foreground_deletion_waits_for_dependents
    ),
    case!(Nothing, deletes::collections_are_deleted_by_selector),
    case!(Controllers, deletes::a_namespace_goes_with_its_content),
    case!(Nothing, discovery::discovery_finds_the_kinds),
    case!(Nothing, discovery::aggregated_discovery_finds_the_kinds),
    case!(Nothing, discovery::unknown_kinds_are_not_found),
    case!(Nothing, discovery::a_server_tells_its_version),
    case!(Nothing, lists::a_watch_goes_on_where_a_list_ended),
    case!(Nothing, lists::pages_show_one_snapshot),
    case!(Nothing, lists::a_page_counts_what_remains),
    case!(Forgetting, lists::a_forgotten_page_is_gone),
    case!(Nothing, lists::a_made_up_token_is_refused),
    case!(Nothing, lists::label_selectors_choose),
    case!(Nothing, lists::field_selectors_choose),
    case!(Nothing, lists::a_version_from_the_future_times_out),
    case!(Nothing, lists::metadata_can_be_read_alone),
    case!(Nothing, lists::a_missing_object_is_not_found),
    case!(
        Nothing,
        watches::a_watch_from_nowhere_begins_with_what_is_there
    ),
    case!(
        Nothing,
        watches::a_selector_turns_changes_into_comings_and_goings
    ),
    case!(Nothing, watches::a_watch_can_be_of_one_name),
    case!(Nothing, watches::a_forgotten_version_is_expired),
    case!(Nothing, watches::a_watch_ends_in_time_with_a_bookmark),
    case!(Nothing, watches::bookmarks_come_only_to_who_allows_them),
    case!(Nothing, watches::a_watch_can_be_of_metadata),
    case!(Nothing, watches::a_streaming_list_marks_its_end),
    case!(Nothing, watches::a_version_is_a_number),
    case!(Nothing, writes::a_new_object_is_completed),
    case!(Nothing, writes::a_taken_name_is_refused),
    case!(Nothing, writes::names_are_generated),
    case!(Nothing, writes::bad_names_are_invalid),
    case!(Nothing, writes::a_namespace_must_exist),
    case!(Nothing, writes::a_stale_update_conflicts),
    case!(Nothing, writes::an_update_of_another_uid_conflicts),
    case!(Nothing, writes::a_write_that_changes_nothing_is_none),
    case!(Nothing, writes::server_fields_are_kept),
    case!(Nothing, writes::merge_patches_merge),
    case!(Nothing, writes::json_patches_test_and_set),
    case!(Nothing, writes::custom_kinds_take_no_strategic_patches),
    case!(Nothing, writes::status_is_written_apart),
    case!(Nothing, writes::empty_metadata_is_none),
    case!(Nothing, writes::without_the_subresource_status_is_a_field),
    case!(Nothing, writes::a_dry_run_changes_nothing),
    case!(Nothing, writes::bodies_are_of_the_kind_of_the_path),
    case!(Nothing, applies::an_apply_with_a_uid_means_that_object),
    case!(Nothing, applies::a_merge_with_a_uid_means_that_object),
    case!(Nothing, deletes::options_come_in_the_query_too),
    case!(Nothing, leases::a_lease_is_renewed_by_one),
    case!(Nothing, leases::events_are_found_by_what_they_are_about),
    case!(Nothing, leases::events_are_checked),
    case!(Nothing, limits::bodies_and_objects_are_bounded),
    case!(Nothing, limits::annotations_are_bounded),
    case!(
        Nothing,
        limits::names_of_finalizers_and_managers_are_checked
    ),
];
