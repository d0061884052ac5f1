//! The fields of pipeline specs and platform specs, as tables.

/// A field of a message.
pub(super) struct Field {
    /// The name in lowerCamelCase.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Of fields with the same number of a message, other than 0, at most one is set.
    pub(super) one_of: u8,
}

/// What a field holds.
pub(super) enum Kind {
    Text,
    Bool,
    Int32,
    Int64,
    Double,
    Duration,
    /// Any value.
    Any,
    /// Any object.
    Object,
    /// A name of these, or its index.
    Enum(&'static [&'static str]),
    Message(&'static [Field]),
    List(&'static Kind),
    Map(&'static Kind),
}

impl Field {
    /// The names by which the field is read: in lowerCamelCase, and in `snake_case`.
    pub(super) fn spellings(&self) -> [String; 2] {
        let mut snake = String::with_capacity(self.name.len() + 4);
        for c in self.name.chars() {
            if c.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        [self.name.to_owned(), snake]
    }
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        one_of: 0,
    }
}

const fn one_of(choice: u8, name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        one_of: choice,
    }
}

use Kind::{Any, Bool, Double, Duration, Enum, Int32, Int64, List, Map, Message, Object, Text};

pub(super) const PIPELINE_SPEC: &[Field] = &[
    field(
        "pipelineInfo",
        Message(&[
            field("name", Text),
            field("displayName", Text),
            field("description", Text),
        ]),
    ),
    field("deploymentSpec", Object),
    field("sdkVersion", Text),
    field("schemaVersion", Text),
    field("components", Map(&Message(COMPONENT))),
    field("root", Message(COMPONENT)),
    field("defaultPipelineRoot", Text),
];

pub(super) const PLATFORM_SPEC: &[Field] =
    &[field("platforms", Map(&Message(SINGLE_PLATFORM_SPEC)))];

const COMPONENT: &[Field] = &[
    field("inputDefinitions", Message(INPUT_DEFINITIONS)),
    field("outputDefinitions", Message(OUTPUT_DEFINITIONS)),
    one_of(1, "dag", Message(DAG)),
    one_of(1, "executorLabel", Text),
    field("singlePlatformSpecs", List(&Message(SINGLE_PLATFORM_SPEC))),
    field(
        "taskConfigPassthroughs",
        List(&Message(&[
            field("field", Enum(PASSTHROUGH)),
            field("applyToTask", Bool),
        ])),
    ),
];

const PASSTHROUGH: &[&str] = &[
    "NONE",
    "RESOURCES",
    "ENV",
    "KUBERNETES_AFFINITY",
    "KUBERNETES_TOLERATIONS",
    "KUBERNETES_NODE_SELECTOR",
    "KUBERNETES_VOLUMES",
];

const PRIMITIVE_TYPE: &[&str] = &["PRIMITIVE_TYPE_UNSPECIFIED", "INT", "DOUBLE", "STRING"];

const PARAMETER_TYPE: &[&str] = &[
    "PARAMETER_TYPE_ENUM_UNSPECIFIED",
    "NUMBER_DOUBLE",
    "NUMBER_INTEGER",
    "STRING",
    "BOOLEAN",
    "LIST",
    "STRUCT",
    "TASK_FINAL_STATUS",
    "TASK_CONFIG",
];

const STRATEGY: &[&str] = &[
    "TRIGGER_STRATEGY_UNSPECIFIED",
    "ALL_UPSTREAM_TASKS_SUCCEEDED",
    "ALL_UPSTREAM_TASKS_COMPLETED",
];

const INPUT_DEFINITIONS: &[Field] = &[
    field(
        "artifacts",
        Map(&Message(&[
            field("artifactType", Message(ARTIFACT_TYPE)),
            field("isArtifactList", Bool),
            field("isOptional", Bool),
            field("description", Text),
        ])),
    ),
    field(
        "parameters",
        Map(&Message(&[
            field("type", Enum(PRIMITIVE_TYPE)),
            field("parameterType", Enum(PARAMETER_TYPE)),
            field("defaultValue", Any),
            field("isOptional", Bool),
            field("description", Text),
            field("literals", List(&Any)),
        ])),
    ),
];

const OUTPUT_DEFINITIONS: &[Field] = &[
    field(
        "artifacts",
        Map(&Message(&[
            field("artifactType", Message(ARTIFACT_TYPE)),
            field("properties", Map(&Message(VALUE_OR_PARAMETER))),
            field("customProperties", Map(&Message(VALUE_OR_PARAMETER))),
            field("metadata", Object),
            field("isArtifactList", Bool),
            field("description", Text),
        ])),
    ),
    field(
        "parameters",
        Map(&Message(&[
            field("type", Enum(PRIMITIVE_TYPE)),
            field("parameterType", Enum(PARAMETER_TYPE)),
            field("description", Text),
        ])),
    ),
];

const ARTIFACT_TYPE: &[Field] = &[
    one_of(1, "schemaTitle", Text),
    one_of(1, "schemaUri", Text),
    one_of(1, "instanceSchema", Text),
    field("schemaVersion", Text),
];

const VALUE_OR_PARAMETER: &[Field] = &[
    one_of(
        1,
        "constantValue",
        Message(&[
            one_of(1, "intValue", Int64),
            one_of(1, "doubleValue", Double),
            one_of(1, "stringValue", Text),
        ]),
    ),
    one_of(1, "runtimeParameter", Text),
    one_of(1, "constant", Any),
];

const DAG: &[Field] = &[
    field("tasks", Map(&Message(TASK))),
    field(
        "outputs",
        Message(&[
            field(
                "artifacts",
                Map(&Message(&[field(
                    "artifactSelectors",
                    List(&Message(&[
                        field("producerSubtask", Text),
                        field("outputArtifactKey", Text),
                    ])),
                )])),
            ),
            field(
                "parameters",
                Map(&Message(&[
                    one_of(1, "valueFromParameter", Message(PARAMETER_SELECTOR)),
                    one_of(
                        1,
                        "valueFromOneof",
                        Message(&[field(
                            "parameterSelectors",
                            List(&Message(PARAMETER_SELECTOR)),
                        )]),
                    ),
                ])),
            ),
        ]),
    ),
];

const PARAMETER_SELECTOR: &[Field] = &[
    field("producerSubtask", Text),
    field("outputParameterKey", Text),
];

const TASK: &[Field] = &[
    field("taskInfo", Message(NAMED)),
    field("inputs", Message(TASK_INPUTS)),
    field("dependentTasks", List(&Text)),
    field(
        "cachingOptions",
        Message(&[field("enableCache", Bool), field("cacheKey", Text)]),
    ),
    field("componentRef", Message(NAMED)),
    field(
        "triggerPolicy",
        Message(&[field("condition", Text), field("strategy", Enum(STRATEGY))]),
    ),
    one_of(
        1,
        "artifactIterator",
        Message(&[
            field("items", Message(&[field("inputArtifact", Text)])),
            field("itemInput", Text),
        ]),
    ),
    one_of(
        1,
        "parameterIterator",
        Message(&[
            field(
                "items",
                Message(&[one_of(1, "raw", Text), one_of(1, "inputParameter", Text)]),
            ),
            field("itemInput", Text),
        ]),
    ),
    field(
        "retryPolicy",
        Message(&[
            field("maxRetryCount", Int32),
            field("backoffDuration", Duration),
            field("backoffFactor", Double),
            field("backoffMaxDuration", Duration),
        ]),
    ),
    field(
        "iteratorPolicy",
        Message(&[field("parallelismLimit", Int32)]),
    ),
];

const NAMED: &[Field] = &[field("name", Text)];

const TASK_INPUTS: &[Field] = &[
    field(
        "parameters",
        Map(&Message(&[
            one_of(
                1,
                "taskOutputParameter",
                Message(&[
                    field("producerTask", Text),
                    field("outputParameterKey", Text),
                ]),
            ),
            one_of(1, "runtimeValue", Message(VALUE_OR_PARAMETER)),
            one_of(1, "componentInputParameter", Text),
            one_of(
                1,
                "taskFinalStatus",
                Message(&[field("producerTask", Text)]),
            ),
            field("parameterExpressionSelector", Text),
        ])),
    ),
    field(
        "artifacts",
        Map(&Message(&[
            one_of(
                1,
                "taskOutputArtifact",
                Message(&[
                    field("producerTask", Text),
                    field("outputArtifactKey", Text),
                ]),
            ),
            one_of(1, "componentInputArtifact", Text),
        ])),
    ),
];

const SINGLE_PLATFORM_SPEC: &[Field] = &[
    field(
        "deploymentSpec",
        Message(&[field("executors", Map(&Object))]),
    ),
    field("platform", Text),
    field("config", Object),
    field(
        "pipelineConfig",
        Message(&[
            field("resourceTtlOnCompletion", Int32),
            field(
                "workspace",
                Message(&[
                    field("size", Text),
                    field("kubernetes", Message(&[field("pvcSpecPatch", Object)])),
                ]),
            ),
            field("resourceTtlOnSuccess", Int32),
            field("resourceTtlOnFailure", Int32),
            field("activeDeadlineSeconds", Int32),
        ]),
    ),
];
