//! That the samples leave out no field.

use std::collections::BTreeSet;

use hindsight_proto::{Message as _, RAY_FILE_DESCRIPTOR_SET, ray_v1 as v1};
use hindsight_ray::alpha as convert;
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage as _, Value,
};

use crate::fixtures::{full, template};

/// What only answers have, and what a template is not asked to keep.
const OUTPUTS: [&str; 5] = [
    "created_at",
    "deleted_at",
    "cluster_state",
    "events",
    "service_endpoint",
];

/// The fields of a message and of those in it, but for outputs.
fn fields(message: &MessageDescriptor, all: &mut BTreeSet<String>) {
    for field in message.fields() {
        let is_output = OUTPUTS.contains(&field.name());
        let is_new = !is_output && all.insert(field.full_name().to_owned());
        if let Some(inner) = field.kind().as_message().filter(|_| is_new) {
            fields(inner, all);
        }
    }
}

/// The fields that have another value than the default one somewhere in a message.
fn set(message: &DynamicMessage, all: &mut BTreeSet<String>) {
    for (field, value) in message.fields() {
        all.insert(field.full_name().to_owned());
        let inner: Vec<&Value> = match value {
            Value::List(items) => items.iter().collect(),
            Value::Map(entries) => {
                let entry = field.kind();
                let entry = entry.as_message().unwrap();
                all.extend(entry.fields().map(|field| field.full_name().to_owned()));
                entries.values().collect()
            }
            value => vec![value],
        };
        for value in inner {
            if let Value::Message(message) = value {
                set(message, all);
            }
        }
    }
}

#[track_caller]
fn says_everything(name: &str, encoded: &[u8]) {
    let pool = DescriptorPool::decode(RAY_FILE_DESCRIPTOR_SET).unwrap();
    let message = pool.get_message_by_name(name).unwrap();
    let (mut wanted, mut found) = (BTreeSet::new(), BTreeSet::new());
    fields(&message, &mut wanted);
    let sample = DynamicMessage::decode(message, encoded).unwrap();
    assert_eq!(sample.descriptor().full_name(), name);
    set(&sample, &mut found);
    let silent: Vec<_> = wanted.difference(&found).collect();
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
fn the_samples_that_come_back_have_a_value_in_every_field() {
    let mut cluster = full("ci", "a");
    says_everything("proto.Cluster", &cluster.encode_to_vec());
    // Of the kinds of volumes that this version knows, and with the source of each.
    cluster.envs = Some(v1::EnvironmentVariables {
        values: [("A".to_owned(), "1".to_owned())].into(),
        ..Default::default()
    });
    let alpha = convert::from_v1(cluster);
    says_everything("kuberay.v1alpha2.Cluster", &alpha.encode_to_vec());
    let mut template = template("ci", "t");
    template.gpu_accelerator = "amd.com/gpu".into();
    template.tolerations[0].value = "v".into();
    says_everything("proto.ComputeTemplate", &template.encode_to_vec());
    let alpha = convert::template_from_v1(template);
    says_everything("kuberay.v1alpha2.ComputeTemplate", &alpha.encode_to_vec());
}
