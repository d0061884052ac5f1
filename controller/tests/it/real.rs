//! The controller on an API server that may be a real one: `make contract` points these scenes at it. Without,
//! they are played on simulated clusters alone.
//!
//! No Job controller is needed, and none interferes: Jobs are `managedBy` the scenes, which end them.

mod changes;
mod ends;
mod races;
mod rules;
mod running;
mod stage;
mod webhook;

use std::path::Path;

use kube::{Client, config::KubeConfigOptions};
use kubesim::{
    Crd, Sim,
    contract::{Difference, Ground},
};
use serde_json::Value;

use stage::{Stage, WEBHOOK};

/// The kind, with its definition.
fn kind() -> Crd {
    Crd::hindsight_workflow().defined_by(hindsight_workflow::crd::definition())
}

/// A simulated cluster with the webhook. It stands for the rules of the definition too, which say less.
fn simulated() -> (Sim, Ground) {
    let sim = Sim::new();
    sim.install(kind());
    let (group, plural) = (hindsight_workflow::GROUP, hindsight_workflow::PLURAL);
    let review = |review: &Value| hindsight_workflow::admission::review(review).unwrap();
    sim.review(group, plural, WEBHOOK, review).unwrap();
    let ground = Ground::simulated(&sim, sim.client());
    (sim, ground)
}

/// Each scene is a test on a simulated cluster, and all are played on the real server.
macro_rules! scenes {
    ($($module:ident: $($scene:ident),+;)+) => {
        mod simulated {
            $($(
                #[tokio::test]
                async fn $scene() {
                    let (_sim, ground) = super::simulated();
                    let stage = super::Stage::new(&ground, true).await.unwrap();
                    super::$module::$scene(stage).await;
                }
            )+)+
        }

        /// Plays every scene, each in namespaces of its own. Returns how many there are, and which failed.
        async fn play(ground: &Ground, is_near: bool) -> (usize, Vec<&'static str>) {
            let mut played = 0;
            let mut failed = Vec::new();
            $($(
                played += 1;
                let stage = Stage::new(ground, is_near).await.unwrap();
                let namespaces = stage.namespaces();
                eprintln!("scene {}", stringify!($scene));
                if tokio::spawn($module::$scene(stage)).await.is_err() {
                    failed.push(stringify!($scene));
                }
                for arena in namespaces {
                    webhook::withdraw(&arena).await.unwrap();
                    ground.clear(&arena).await.unwrap();
                }
            )+)+
            (played, failed)
        }
    };
}

scenes! {
    running:
        wf_01_an_example_is_applied_and_runs_to_its_end,
        wf_21_steps_start_when_they_may_and_a_diamond_is_complete,
        wf_22_and_wf_23_status_and_job_name_each_other,
        wf_25_counters_of_a_job_do_not_end_a_step,
        wf_27_and_wf_50_a_workflow_without_steps_is_complete_and_its_events_tell_its_life,
        wf_11_and_wf_29_a_step_completes_with_what_it_waits_for,
        wf_60_the_plugin_describes_repeats_and_cancels,
        the_largest_workflow_is_taken_and_may_be_written,
        the_rights_of_the_manifest_are_enough;
    ends:
        wf_30_a_failed_job_fails_the_workflow_after_its_siblings,
        wf_30_a_template_that_the_api_server_refuses_fails_its_step,
        wf_28_a_deadline_ends_a_workflow_and_its_jobs,
        wf_43_a_delete_ends_running_jobs_and_no_others,
        wf_43_jobs_of_a_workflow_that_orphans_them_go_on,
        wf_24_a_foreign_job_of_the_name_is_neither_adopted_nor_deleted,
        wf_11_a_workflow_fails_with_the_one_it_waits_for;
    races:
        wf_42_of_an_edit_and_a_start_at_the_same_time_one_wins,
        wf_24_two_controllers_without_a_lease_create_each_job_once,
        wf_24_a_job_that_others_delete_is_created_again,
        a_delete_at_the_same_time_as_a_start_leaves_no_job_that_goes_on,
        a_replica_that_stands_by_goes_on_when_the_first_ends;
    rules:
        wf_02_to_wf_11_what_is_not_valid_is_refused,
        every_rule_of_the_definition_is_tried;
    changes:
        wf_40_steps_that_were_started_do_not_change,
        wf_41_selectors_do_not_change_and_nothing_does_after_the_end;
    webhook:
        wf_03_a_cycle_is_refused_in_the_words_of_the_webhook;
}

#[tokio::test]
async fn the_controller_does_the_same_on_a_real_server() {
    #[expect(
        clippy::disallowed_methods,
        reason = "a developer points the suite at a server with it"
    )]
    let path = std::env::var("KUBESIM_CONTRACT_KUBECONFIG");
    let Ok(path) = path else {
        eprintln!("skipped: KUBESIM_CONTRACT_KUBECONFIG is not set");
        return;
    };
    let (client, is_near) = connect(Path::new(&path)).await;
    let ground = Ground::real(client, &[kind()]).await.unwrap();
    let (played, failed) = Box::pin(play(&ground, is_near)).await;
    let left: Result<(), Difference> = ground.leave().await;
    eprintln!("contract: {played} scenes of the controller ran");
    assert!(failed.is_empty(), "{failed:?}");
    left.unwrap();
}

/// A client of the API server, and whether that is on this machine, so that it reaches a webhook here.
async fn connect(kubeconfig: &Path) -> (Client, bool) {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    // Refusals are seen as they are.
    config.default_retry = false;
    let host = config.cluster_url.host().unwrap_or_default();
    let is_near = host == "localhost" || host.starts_with("127.") || host == "[::1]";
    (Client::try_from(config).unwrap(), is_near)
}
