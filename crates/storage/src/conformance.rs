//! What every store must do, as a table of cases that each backend runs.
//!
//! A case gets a database of its own and knows only the seam. A test
//! fails if a case is written but not in the table.

mod aggregates;
pub(crate) mod backends;
pub(crate) mod dictionaries;
mod disturbed;
mod expiry;
mod feed;
mod files;
mod filtering;
pub(crate) mod fixtures;
mod histories;
mod lifecycle;
mod listing;
mod log_lists;
pub(crate) mod logs;
mod model;
mod payloads;
mod purge;
mod races;
mod restless;
pub(crate) mod tests;
mod thin;
mod ways;
mod writes;

use std::{pin::Pin, sync::Arc, time::Duration};

use self::{
    backends::{Database, MemoryDatabase, memory},
    restless::Share,
};
use crate::{
    codec::objects::{
        ObjectBackend,
        testing::{give, given},
    },
    driver::options::{Options, Schema},
    memory::Memory,
    seam::{ArchiveIndex, LogStore, Maintenance, Store},
    store::resolve::{Opened, open},
};

/// An open store and where it is.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// The store under test.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) maintenance: Arc<dyn Maintenance>,
    /// Logs, which no map in memory keeps.
    pub(crate) logs: Option<Arc<dyn LogStore>>,
    /// Which results are in files, which no map in memory keeps.
    pub(crate) index: Option<Arc<dyn ArchiveIndex>>,
    /// Where it is, to be opened again.
    pub(crate) url: String,
}

impl World {
    /// Opens the database at `url`.
    pub(crate) async fn open(url: &str) -> Self {
        if let Some(name) = url.strip_prefix("memory:") {
            return Self::in_memory(name);
        }
        let options = Options {
            schema: Schema::Migrate,
            depot: given(url),
            ..Options::default()
        };
        Self::of(url, open(url, &options).await.expect("the database opens"))
    }

    /// Maps in memory, those that have this name among the tests of this process; new ones if
    /// it is empty.
    pub(super) fn in_memory(name: &str) -> Self {
        let memory = match name {
            "" => Memory::default(),
            name => memory(name),
        };
        let memory = Arc::new(memory);
        Self {
            store: Arc::<Memory>::clone(&memory),
            maintenance: memory,
            logs: None,
            index: None,
            url: format!("memory:{name}"),
        }
    }

    /// Whether the store keeps nothing.
    pub(super) fn is_in_memory(&self) -> bool {
        self.url.starts_with("memory:")
    }

    fn of(url: &str, opened: Opened) -> Self {
        Self {
            store: opened.store,
            maintenance: opened.maintenance,
            logs: Some(opened.logs),
            index: Some(opened.index),
            url: url.to_owned(),
        }
    }
}

/// Stores of several servers on one database.
pub(crate) struct Replicas(Vec<World>);

impl Replicas {
    /// One store for each.
    fn stores(&self) -> Vec<Arc<dyn Store>> {
        self.0
            .iter()
            .map(|world| Arc::clone(&world.store))
            .collect()
    }

    async fn close(self) {
        // The first is the world's own.
        for world in self.0.iter().skip(1) {
            world.maintenance.close().await;
        }
    }
}

impl World {
    /// Three servers on the same database, or this one where only one makes sense.
    async fn replicas(&self) -> Replicas {
        let mut worlds = vec![self.clone()];
        if self.url.starts_with("postgres") {
            worlds.push(Self::open(&self.url).await);
            worlds.push(Self::open(&self.url).await);
        }
        Replicas(worlds)
    }
}

type Run = fn(World) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// One thing that must be true of every store.
struct Case {
    room: &'static str,
    name: &'static str,
    run: Run,
}

macro_rules! cases {
    ($($module:ident::$case:ident),* $(,)?) => {
        &[$(Case {
            room: stringify!($module),
            name: stringify!($case),
            run: |world| Box::pin($module::$case(world)),
        }),*]
    };
}

const CASES: &[Case] = cases![
    writes::what_is_written_is_read_back,
    expiry::what_changed_since_does_not_expire,
    expiry::what_is_held_does_not_expire,
    expiry::a_hold_ends_with_its_result,
    payloads::a_big_body_comes_back_byte_for_byte,
    payloads::payloads_need_not_be_json,
    payloads::a_payload_can_come_and_go,
    payloads::text_of_any_kind_is_only_text,
    dictionaries::like_bodies_come_back_byte_for_byte,
    dictionaries::dictionaries_go_when_nothing_refers_to_them,
    dictionaries::a_body_whose_dictionary_was_swept_is_stored_all_the_same,
    dictionaries::sweeping_beside_writers_harms_none,
    dictionaries::dictionaries_never_cross_a_parent,
    dictionaries::a_deleted_payload_is_in_no_dictionary_after_a_sweep,
    dictionaries::a_replaced_payload_is_in_no_dictionary_after_a_sweep,
    dictionaries::a_refused_payload_is_in_no_dictionary_after_a_sweep,
    purge::a_parent_is_purged_and_nothing_of_it_is_left,
    purge::a_record_and_a_result_are_purged_and_others_stay,
    files::small_files_are_joined_and_what_left_them_is_in_none,
    files::full_files_are_not_joined_and_small_ones_once,
    files::a_result_that_went_while_its_file_was_written_is_in_no_file,
    files::a_file_that_is_erased_while_it_is_written_is_not_left,
    files::bytes_that_a_crash_leaves_of_an_erased_file_are_swept,
    files::a_result_that_is_too_large_is_not_moved,
    files::what_is_erased_is_in_no_file,
    files::no_result_gets_into_a_file_that_is_removed,
    files::lists_are_whole_while_files_are_written_again_and_removed,
    files::what_comes_back_from_a_file_meanwhile_is_in_answers_about_its_result,
    files::a_sum_about_a_result_is_whole_while_its_file_is_written_again,
    writes::a_name_is_taken_once,
    writes::a_record_needs_its_result,
    writes::what_is_not_there_is_missing,
    writes::a_stale_etag_changes_nothing,
    writes::an_update_keeps_what_the_first_write_fixed,
    writes::an_update_never_makes_a_deleted_row_again,
    writes::deleting_a_result_deletes_its_records,
    writes::a_batch_happens_whole_or_not_at_all,
    writes::batches_that_come_together_leave_one_another_alone,
    writes::a_batch_sees_its_own_changes,
    writes::of_many_that_come_at_once_each_has_its_outcome,
    payloads::many_records_are_inserted_at_once_or_none,
    listing::every_order_and_page_size_gives_each_row_once,
    listing::scopes_cover_what_they_say,
    listing::pages_are_stable_while_rows_are_inserted,
    listing::bodies_come_only_when_asked,
    listing::a_list_ends_when_it_has_its_bytes,
    listing::lists_without_payloads_end_when_they_have_their_bytes,
    listing::records_have_no_key_of_results,
    listing::pages_by_many_labels_follow_each_other,
    thin::columns_say_what_payloads_say,
    thin::columns_that_are_asked_for_are_those_of_a_list_of_all,
    thin::lists_with_columns_have_the_order_and_the_pages_of_others,
    ways::rows_are_the_same_whichever_way_they_are_found,
    filtering::every_test_agrees_with_plain_evaluation_on_results,
    filtering::every_test_agrees_with_plain_evaluation_on_records,
    filtering::combined_conditions_agree_with_plain_evaluation,
    filtering::a_condition_of_thousands_is_answered,
    filtering::names_are_compared_as_wholes,
    filtering::uids_are_compared_whatever_is_kept_of_them,
    aggregates::sums_agree_with_plain_ones,
    aggregates::buckets_of_the_calendar_are_those_of_the_zone,
    aggregates::what_has_no_rows_has_no_groups,
    aggregates::percentiles_of_many_are_the_same_sketch,
    aggregates::sums_are_of_one_moment,
    feed::every_change_is_told_once_and_as_it_is_stored,
    feed::what_did_not_happen_is_not_told,
    feed::a_feed_goes_on_at_another_server_without_gap_or_repeat,
    feed::a_feed_cannot_go_on_where_changes_were_removed,
    feed::a_cursor_has_one_holder_at_a_time,
    logs::lines_are_read_back_whatever_the_appends_were,
    logs::what_is_stored_already_is_passed_over_and_a_gap_is_refused,
    logs::two_writers_of_one_log_do_not_interleave,
    logs::a_sealed_log_has_its_digest_and_takes_nothing_more,
    logs::a_sealed_log_is_packed_beside_its_readers,
    logs::logs_go_with_their_record_and_with_their_result,
    logs::an_upload_takes_the_place_of_the_one_before,
    log_lists::pages_of_logs_have_each_once_and_the_newest_results_first,
    log_lists::pages_of_logs_are_stable_while_logs_come_and_go,
    log_lists::a_page_of_logs_after_a_deleted_result_has_none_of_another_parent,
    races::of_many_writers_with_one_etag_one_wins,
    races::of_many_creators_of_one_name_one_wins,
    races::rows_of_one_id_that_come_at_once_have_an_outcome_each,
    races::no_record_outlives_its_result,
    races::a_delete_and_an_update_do_not_both_win,
    races::batches_in_crossed_order_all_end,
    races::a_refused_batch_does_not_harm_its_neighbours,
    histories::of_ten_thousand_races_each_has_one_winner,
    histories::histories_of_many_writers_are_chains,
    histories::what_is_deleted_leaves_nothing,
    model::changes_that_come_together_agree_with_the_model_one_by_one,
    model::random_histories_agree_with_a_model,
    lifecycle::what_was_acknowledged_is_there_after_reopening,
    lifecycle::two_open_stores_see_each_other,
    lifecycle::a_secret_is_made_once,
    lifecycle::migrating_again_changes_nothing,
    lifecycle::a_closed_store_says_so,
];

/// Many times what the longest case takes beside compilers.
const LONGEST: Duration = Duration::from_mins(10);

/// Runs every case on databases that `fresh` makes, and fails with the names of those that fail.
async fn run_all<D: Database>(fresh: impl AsyncFn() -> D) {
    run(CASES.iter(), fresh).await;
}

/// Runs the cases that are about what a store does, and not about its tables or ways to rows.
async fn run_in_memory() {
    const ABOUT_TABLES: [&str; 4] = [
        "a_parent_is_purged_and_nothing_of_it_is_left",
        "a_record_and_a_result_are_purged_and_others_stay",
        "what_is_deleted_leaves_nothing",
        "migrating_again_changes_nothing",
    ];
    let is_about_rows = |case: &&Case| {
        !["dictionaries", "files", "ways", "logs", "log_lists"].contains(&case.room)
            && !ABOUT_TABLES.contains(&case.name)
    };
    run(CASES.iter().filter(is_about_rows), async || {
        MemoryDatabase::fresh()
    })
    .await;
}

/// Runs the cases that are about bodies and logs, with as many bodies outside the database as can be.
async fn run_outside<D: Database>(
    fresh: impl AsyncFn() -> D,
    depot: impl Fn() -> Arc<ObjectBackend>,
) {
    const ROOMS: [&str; 8] = [
        "writes",
        "logs",
        "payloads",
        "dictionaries",
        "purge",
        "lifecycle",
        "races",
        "model",
    ];
    let cases = CASES.iter().filter(|case| ROOMS.contains(&case.room));
    run(cases, async || {
        let database = fresh().await;
        give(&database.url(), &depot());
        database
    })
    .await;
}

/// Runs the cases that are about records, which move to files and back meanwhile; says how many results did.
async fn run_restless<D: Database>(
    fresh: impl AsyncFn() -> D,
    share: Share,
    rooms: &[&str],
) -> u64 {
    let moved = Arc::default();
    let cases = CASES.iter().filter(|case| rooms.contains(&case.room));
    let restless = |world: World| world.restless(share, &moved);
    run_in(cases, fresh, restless).await;
    moved.load(std::sync::atomic::Ordering::Relaxed)
}

async fn run<D: Database>(cases: impl Iterator<Item = &'static Case>, fresh: impl AsyncFn() -> D) {
    run_in(cases, fresh, |world| world).await;
}

async fn run_in<D: Database>(
    cases: impl Iterator<Item = &'static Case>,
    fresh: impl AsyncFn() -> D,
    with: impl Fn(World) -> World,
) {
    let mut failed = Vec::new();
    for case in cases {
        let database = fresh().await;
        let world = with(World::open(&database.url()).await);
        let maintenance = Arc::clone(&world.maintenance);
        let played = async {
            let outcome = tokio::spawn((case.run)(world)).await;
            maintenance.close().await;
            database.remove().await;
            outcome
        };
        // A case that waits for ever is named, too.
        match tokio::time::timeout(LONGEST, played).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => failed.push(case.name),
            Err(_) => panic!("{} has not ended after {LONGEST:?}", case.name),
        }
    }
    assert!(failed.is_empty(), "cases that do not hold: {failed:#?}");
}
