//! Streams finished runs off a Kubernetes cluster into Hindsight, and collects what is stored.
