//! Argo keeps the nodes of a large workflow compressed in its status. History wants to be asked
//! about them, so they are unpacked before anything else sees the object.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use serde_json::Value;

use hindsight_run::json;

/// The most bytes that nodes may unpack to; a record of more could not be stored.
const LARGEST: u64 = 24 << 20;

/// Puts `status.nodes` in the place of `status.compressedNodes`. What cannot be unpacked stays as
/// it is.
pub(super) fn unpack(object: &mut Value) {
    let is_argo = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .is_some_and(|version| version.starts_with("argoproj.io/"));
    if !is_argo {
        return;
    }
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let packed = status.get("compressedNodes").and_then(Value::as_str);
    let Some(nodes) = packed.filter(|text| !text.is_empty()).and_then(nodes) else {
        return;
    };
    status.remove("compressedNodes");
    status.insert("nodes".to_owned(), nodes);
}

fn nodes(packed: &str) -> Option<Value> {
    let packed = STANDARD.decode(packed).ok()?;
    let mut text = Vec::new();
    let mut unpacked = GzDecoder::new(packed.as_slice()).take(LARGEST + 1);
    unpacked.read_to_end(&mut text).ok()?;
    if text.len() as u64 > LARGEST {
        return None;
    }
    json::parse(&text).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use serde_json::json;

    use super::*;

    fn packed(text: &[u8]) -> String {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text).unwrap();
        STANDARD.encode(packed.finish().unwrap())
    }

    fn workflow(api_version: &str, nodes: &str) -> Value {
        json!({"apiVersion": api_version, "kind": "Workflow",
            "status": {"phase": "Succeeded", "compressedNodes": nodes}})
    }

    #[test]
    fn compressed_nodes_become_nodes() {
        let mut object = workflow(
            "argoproj.io/v1alpha1",
            &packed(br#"{"a":{"phase":"Failed"}}"#),
        );
        unpack(&mut object);
        let wanted = json!({"phase": "Succeeded", "nodes": {"a": {"phase": "Failed"}}});
        assert_eq!(object["status"], wanted);
    }

    #[test]
    fn what_cannot_be_unpacked_stays() {
        let bomb = packed(&vec![b' '; usize::try_from(LARGEST).unwrap() + 1]);
        for nodes in ["", "%", "AAAA", &packed(b"[1]"), &packed(b"{"), &bomb] {
            let before = workflow("argoproj.io/v1alpha1", nodes);
            let mut after = before.clone();
            unpack(&mut after);
            assert_eq!(before, after);
        }
        let before = workflow("example.com/v1", &packed(b"{}"));
        let mut after = before.clone();
        unpack(&mut after);
        assert_eq!(before, after);
    }
}
