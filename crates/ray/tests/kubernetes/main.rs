//! Clusters and templates on an API server that may be a real one: `make contract` points these scenes at it. Without, they
//! are played on simulated clusters alone. They have the names of the requirements of the proposal.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub,
    reason = "a test that meets the unexpected fails"
)]

mod fields;
mod fixtures;
mod objects;
mod refusals;
mod stage;

use kube::{Client, config::KubeConfigOptions};
use kubesim::{
    Crd, Sim,
    contract::{Difference, Ground},
};

use stage::Stage;

/// Each scene is a test on a simulated cluster, and all are played on the real server.
macro_rules! scenes {
    ($($module:ident: $($scene:ident),+;)+) => {
        mod simulated {
            $($(
                #[tokio::test]
                async fn $scene() {
                    let sim = super::Sim::new();
                    sim.install_all(super::Crd::ray());
                    let ground = super::Ground::simulated(&sim, sim.client());
                    let stage = super::Stage::new(&ground).await.unwrap();
                    super::$module::$scene(stage).await;
                }
            )+)+
        }

        /// Plays every scene, each in namespaces of its own. Returns how many there are, and which failed.
        async fn play(ground: &Ground) -> (usize, Vec<&'static str>) {
            let mut played = 0;
            let mut failed = Vec::new();
            $($(
                played += 1;
                let stage = Stage::new(ground).await.unwrap();
                let arenas = stage.arenas();
                eprintln!("scene {}", stringify!($scene));
                if tokio::spawn($module::$scene(stage)).await.is_err() {
                    failed.push(stringify!($scene));
                }
                for arena in arenas {
                    ground.clear(&arena).await.unwrap();
                }
            )+)+
            (played, failed)
        }
    };
}

scenes! {
    objects:
        ray_07_and_14_every_field_of_version_1_comes_back,
        ray_05_to_07_and_14_every_field_of_version_1alpha2_comes_back,
        ray_08_events_of_both_forms_are_those_about_this_object,
        ray_09_outputs_are_those_of_the_object,
        ray_12_the_object_is_what_the_operator_expects,
        ray_13_templates_are_optional_and_config_maps_with_their_label,
        ray_16_a_delete_takes_the_cluster_and_no_job,
        ray_17_lists_have_pages,
        objects_that_others_changed_are_read_with_defaults;
    refusals:
        ray_01_no_operator_is_needed_and_no_pod_is_made,
        ray_10_what_makes_no_sense_is_invalid_and_makes_nothing,
        ray_11_missing_and_taken_names_are_told_apart,
        ray_15_others_clusters_are_not_visible;
}

/// A variable that a developer sets to point the scenes at a server.
fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a developer points the suite at a server with it"
    )]
    std::env::var(name).ok()
}

/// The kinds, with the definition of RayClusters that KubeRay publishes where one is given: it is too large to be kept
/// here. Without, a real server that does not have the kind gets one without a schema.
fn kinds() -> [Crd; 2] {
    let [jobs, clusters] = Crd::ray();
    let Some(path) = variable("HINDSIGHT_TEST_RAY_CRD") else {
        eprintln!(
            "HINDSIGHT_TEST_RAY_CRD is not set: RayClusters are tried without the schema of KubeRay"
        );
        return [jobs, clusters];
    };
    let text = std::fs::read_to_string(path).unwrap();
    [
        jobs,
        clusters.defined_by(serde_saphyr::from_str(&text).unwrap()),
    ]
}

#[tokio::test]
async fn the_cluster_service_does_the_same_on_a_real_server() {
    let Some(path) = variable("KUBESIM_CONTRACT_KUBECONFIG") else {
        eprintln!("skipped: KUBESIM_CONTRACT_KUBECONFIG is not set");
        return;
    };
    hindsight_cluster::choose_cryptography();
    let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let client = Client::try_from(config.unwrap()).unwrap();
    let ground = Ground::real(client, &kinds()).await.unwrap();
    let (played, failed) = Box::pin(play(&ground)).await;
    let left: Result<(), Difference> = ground.leave().await;
    eprintln!("contract: {played} scenes of the cluster service ran");
    assert!(failed.is_empty(), "{failed:?}");
    left.unwrap();
}
