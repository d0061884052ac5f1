//! A stateful simulator of the Kubernetes API, for tests and demos.
