//! The table of cases. A test compares it with the functions of the suite.

use super::{Case, Needs, applies, deletes, discovery, lists, watches, writes};

/// Every case of the contract.
pub const CASES: &[Case] = &[
    Case {
        name: "applies::an_apply_owns_what_it_sets",
        needs: Needs::Nothing,
        run: |arena| Box::pin(applies::an_apply_owns_what_it_sets(arena)),
    },
    Case {
        name: "applies::applied_finalizers_are_a_set",
        needs: Needs::Nothing,
        run: |arena| Box::pin(applies::applied_finalizers_are_a_set(arena)),
    },
    Case {
        name: "applies::an_apply_of_the_status_sets_the_status_alone",
        needs: Needs::Nothing,
        run: |arena| Box::pin(applies::an_apply_of_the_status_sets_the_status_alone(arena)),
    },
    Case {
        name: "deletes::preconditions_must_hold",
        needs: Needs::Nothing,
        run: |arena| Box::pin(deletes::preconditions_must_hold(arena)),
    },
    Case {
        name: "deletes::a_deletion_tells_what_went",
        needs: Needs::Nothing,
        run: |arena| Box::pin(deletes::a_deletion_tells_what_went(arena)),
    },
    Case {
        name: "deletes::finalizers_hold_a_deletion",
        needs: Needs::Nothing,
        run: |arena| Box::pin(deletes::finalizers_hold_a_deletion(arena)),
    },
    Case {
        name: "deletes::a_deletion_has_a_version",
        needs: Needs::Nothing,
        run: |arena| Box::pin(deletes::a_deletion_has_a_version(arena)),
    },
    Case {
        name: "deletes::dependents_go_with_their_owner",
        needs: Needs::Controllers,
        run: |arena| Box::pin(deletes::dependents_go_with_their_owner(arena)),
    },
    Case {
        name: "deletes::orphans_stay",
        needs: Needs::Controllers,
        run: |arena| Box::pin(deletes::orphans_stay(arena)),
    },
    Case {
        name: "deletes::a_foreground_deletion_waits_for_dependents",
        needs: Needs::Controllers,
        run: |arena| Box::pin(deletes::a_foreground_deletion_waits_for_dependents(arena)),
    },
    Case {
        name: "deletes::collections_are_deleted_by_selector",
        needs: Needs::Nothing,
        run: |arena| Box::pin(deletes::collections_are_deleted_by_selector(arena)),
    },
    Case {
        name: "deletes::a_namespace_goes_with_its_content",
        needs: Needs::Controllers,
        run: |arena| Box::pin(deletes::a_namespace_goes_with_its_content(arena)),
    },
    Case {
        name: "discovery::discovery_finds_the_kinds",
        needs: Needs::Nothing,
        run: |arena| Box::pin(discovery::discovery_finds_the_kinds(arena)),
    },
    Case {
        name: "discovery::aggregated_discovery_finds_the_kinds",
        needs: Needs::Nothing,
        run: |arena| Box::pin(discovery::aggregated_discovery_finds_the_kinds(arena)),
    },
    Case {
        name: "discovery::unknown_kinds_are_not_found",
        needs: Needs::Nothing,
        run: |arena| Box::pin(discovery::unknown_kinds_are_not_found(arena)),
    },
    Case {
        name: "discovery::a_server_tells_its_version",
        needs: Needs::Nothing,
        run: |arena| Box::pin(discovery::a_server_tells_its_version(arena)),
    },
    Case {
        name: "lists::a_watch_goes_on_where_a_list_ended",
        needs: Needs::Nothing,
        run: |arena| Box::pin(lists::a_watch_goes_on_where_a_list_ended(arena)),
    },
    Case {
        name: "lists::pages_show_one_snapshot",
        needs: Needs::Nothing,
        run: |arena| Box::pin(lists::pages_show_one_snapshot(arena)),
    },
    Case {
        name: "lists::a_page_counts_what_remains",
        needs: Needs::Nothing,
        run: |arena| Box::pin(lists::a_page_counts_what_remains(arena)),
    },
    Case {
        name: "lists::a_forgotten_page_is_gone",
        needs: Needs::Forgetting,
        run: |arena| Box::pin(lists::a_forgotten_page_is_gone(arena)),
    },
    Case {
        name: "lists::a_made_up_token_is_refused",
        needs: Needs::Nothing,
        run: |arena| Box::pin(lists::a_made_up_token_is_refused(arena)),
    },
    Case {
        name: "lists::label_selectors_choose",
        needs: Needs::Nothing,
        run: |arena| Box::pin(lists::label_selectors_choose(arena)),
    },
    Case {
        name: "lists::field_selectors_choose",
        needs: Needs::Nothing,
        run: |arena| Box::pin(lists::field_selectors_choose(arena)),
    },
    Case {
        name: "lists::a_version_from_the_future_times_out",
        needs: Needs::Nothing,
        run: |arena| Box::pin(lists::a_version_from_the_future_times_out(arena)),
    },
    Case {
        name: "lists::metadata_can_be_read_alone",
        needs: Needs::Nothing,
        run: |arena| Box::pin(lists::metadata_can_be_read_alone(arena)),
    },
    Case {
        name: "lists::a_missing_object_is_not_found",
        needs: Needs::Nothing,
        run: |arena| Box::pin(lists::a_missing_object_is_not_found(arena)),
    },
    Case {
        name: "watches::a_watch_from_nowhere_begins_with_what_is_there",
        needs: Needs::Nothing,
        run: |arena| {
            Box::pin(watches::a_watch_from_nowhere_begins_with_what_is_there(
                arena,
            ))
        },
    },
    Case {
        name: "watches::a_selector_turns_changes_into_comings_and_goings",
        needs: Needs::Nothing,
        run: |arena| {
            Box::pin(watches::a_selector_turns_changes_into_comings_and_goings(
                arena,
            ))
        },
    },
    Case {
        name: "watches::a_watch_can_be_of_one_name",
        needs: Needs::Nothing,
        run: |arena| Box::pin(watches::a_watch_can_be_of_one_name(arena)),
    },
    Case {
        name: "watches::a_forgotten_version_is_expired",
        needs: Needs::Nothing,
        run: |arena| Box::pin(watches::a_forgotten_version_is_expired(arena)),
    },
    Case {
        name: "watches::a_watch_ends_in_time_with_a_bookmark",
        needs: Needs::Nothing,
        run: |arena| Box::pin(watches::a_watch_ends_in_time_with_a_bookmark(arena)),
    },
    Case {
        name: "watches::bookmarks_come_only_to_who_allows_them",
        needs: Needs::Nothing,
        run: |arena| Box::pin(watches::bookmarks_come_only_to_who_allows_them(arena)),
    },
    Case {
        name: "watches::a_watch_can_be_of_metadata",
        needs: Needs::Nothing,
        run: |arena| Box::pin(watches::a_watch_can_be_of_metadata(arena)),
    },
    Case {
        name: "watches::a_streaming_list_marks_its_end",
        needs: Needs::Nothing,
        run: |arena| Box::pin(watches::a_streaming_list_marks_its_end(arena)),
    },
    Case {
        name: "watches::a_version_is_a_number",
        needs: Needs::Nothing,
        run: |arena| Box::pin(watches::a_version_is_a_number(arena)),
    },
    Case {
        name: "writes::a_new_object_is_completed",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::a_new_object_is_completed(arena)),
    },
    Case {
        name: "writes::a_taken_name_is_refused",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::a_taken_name_is_refused(arena)),
    },
    Case {
        name: "writes::names_are_generated",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::names_are_generated(arena)),
    },
    Case {
        name: "writes::bad_names_are_invalid",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::bad_names_are_invalid(arena)),
    },
    Case {
        name: "writes::a_namespace_must_exist",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::a_namespace_must_exist(arena)),
    },
    Case {
        name: "writes::a_stale_update_conflicts",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::a_stale_update_conflicts(arena)),
    },
    Case {
        name: "writes::an_update_of_another_uid_conflicts",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::an_update_of_another_uid_conflicts(arena)),
    },
    Case {
        name: "writes::a_write_that_changes_nothing_is_none",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::a_write_that_changes_nothing_is_none(arena)),
    },
    Case {
        name: "writes::server_fields_are_kept",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::server_fields_are_kept(arena)),
    },
    Case {
        name: "writes::merge_patches_merge",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::merge_patches_merge(arena)),
    },
    Case {
        name: "writes::json_patches_test_and_set",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::json_patches_test_and_set(arena)),
    },
    Case {
        name: "writes::custom_kinds_take_no_strategic_patches",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::custom_kinds_take_no_strategic_patches(arena)),
    },
    Case {
        name: "writes::status_is_written_apart",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::status_is_written_apart(arena)),
    },
    Case {
        name: "writes::empty_metadata_is_none",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::empty_metadata_is_none(arena)),
    },
    Case {
        name: "writes::without_the_subresource_status_is_a_field",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::without_the_subresource_status_is_a_field(arena)),
    },
    Case {
        name: "writes::a_dry_run_changes_nothing",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::a_dry_run_changes_nothing(arena)),
    },
    Case {
        name: "writes::bodies_are_of_the_kind_of_the_path",
        needs: Needs::Nothing,
        run: |arena| Box::pin(writes::bodies_are_of_the_kind_of_the_path(arena)),
    },
];
