//! Conversion between options of the autoscaler and `autoscalerOptions` of a RayCluster.

use hindsight_proto::ray_v1::{AutoscalerOptions, EnvironmentVariables};
use serde_json::{Value, json};

use crate::{
    env,
    json::{items, number, object, text},
    volumes,
};

/// Resources of the autoscaler where only the other one is given.
const CPU: &str = "500m";
const MEMORY: &str = "512Mi";

pub(crate) fn options(options: &AutoscalerOptions) -> Value {
    let or = |text: &str, default: &str| match text {
        "" => default.to_owned(),
        text => text.to_owned(),
    };
    let resources = match (options.cpu.as_str(), options.memory.as_str()) {
        ("", "") => Value::Null,
        (cpu, memory) => {
            let amounts = json!({"cpu": or(cpu, CPU), "memory": or(memory, MEMORY)});
            json!({"limits": amounts, "requests": amounts})
        }
    };
    let seconds = options.idle_timeout_seconds;
    let pulls = options.image_pull_policy == "Always";
    let from = options
        .envs
        .as_ref()
        .map(|envs| env::env_from(&envs.values_from));
    let values = options.envs.as_ref().map(|envs| EnvironmentVariables {
        values: envs.values.clone(),
        ..EnvironmentVariables::default()
    });
    object([
        (
            "idleTimeoutSeconds",
            if seconds > 0 {
                seconds.into()
            } else {
                Value::Null
            },
        ),
        ("upscalingMode", options.upscaling_mode.as_str().into()),
        ("image", options.image.as_str().into()),
        ("imagePullPolicy", if pulls { "Always" } else { "" }.into()),
        ("resources", resources),
        (
            "env",
            env::entries(Vec::new(), values.as_ref(), None).into(),
        ),
        ("envFrom", from.unwrap_or_default().into()),
        ("volumeMounts", volumes::mounts(&options.volumes).into()),
    ])
}

/// The options of a RayCluster; `of_head` are the volumes of the pod of the head.
pub(crate) fn read(options: &Value, of_head: &[Value]) -> AutoscalerOptions {
    let values_from = env::read_env_from(options);
    let values = env::read(options, &[], None);
    let envs = EnvironmentVariables {
        values_from,
        ..values.unwrap_or_default()
    };
    AutoscalerOptions {
        idle_timeout_seconds: number(options, "/idleTimeoutSeconds").unwrap_or(0),
        upscaling_mode: text(options, "/upscalingMode"),
        image: text(options, "/image"),
        image_pull_policy: text(options, "/imagePullPolicy"),
        cpu: text(options, "/resources/limits/cpu"),
        memory: text(options, "/resources/limits/memory"),
        envs: (envs != EnvironmentVariables::default()).then_some(envs),
        volumes: volumes::read(items(options, "/volumeMounts"), of_head),
    }
}
