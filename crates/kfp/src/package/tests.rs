//! Files of every kind, and those that are made to harm.

use std::io::{Cursor, Write};

use flate2::{Compression, write::GzEncoder};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{Error, LARGEST, text};

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, content) in entries {
        match name.strip_suffix('/') {
            Some(folder) => file.add_directory(folder, options).unwrap(),
            None => {
                file.start_file(*name, options).unwrap();
                file.write_all(content).unwrap();
            }
        }
    }
    file.finish().unwrap().into_inner()
}

fn tarred(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_entry_type(match name.ends_with('/') {
            true => tar::EntryType::Directory,
            false => tar::EntryType::Regular,
        });
        // The crate refuses names that lead out of an archive.
        let raw = header.as_gnu_mut().unwrap();
        raw.name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        file.append(&header, *content).unwrap();
    }
    file.into_inner().unwrap().finish().unwrap()
}

#[track_caller]
fn holds(entries: &[(&str, &[u8])], expected: &[u8]) {
    for (name, bytes) in [("a.zip", zipped(entries)), ("a.tar.gz", tarred(entries))] {
        assert_eq!(text(name, &bytes).unwrap(), expected, "{name}");
    }
}

#[track_caller]
fn refuses(entries: &[(&str, &[u8])], because: &str) {
    for (name, bytes) in [("a.zip", zipped(entries)), ("a.tar.gz", tarred(entries))] {
        let because = Error::Archive(because.to_owned());
        assert_eq!(text(name, &bytes), Err(because), "{name}");
    }
}

#[test]
fn kfp_45_a_file_is_known_by_its_name_or_how_it_begins() {
    for name in ["a.yaml", "b.yml", "c.d.json"] {
        assert_eq!(text(name, b"PK").unwrap().as_ref(), b"PK", "{name}");
    }
    for name in ["a.txt", "yaml", ""] {
        let error = text(name, b"a: 1").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "Unexpected pipeline file format. Support .zip, .tar.gz, .json or YAML; got `{name}`"
            )
        );
    }
    let archive = zipped(&[("p.yaml", b"a: 1")]);
    assert_eq!(text("whatever", &archive).unwrap().as_ref(), b"a: 1");
}

#[test]
fn kfp_45_the_entry_called_pipeline_wins_over_the_first_one() {
    holds(&[("a.yml", b"first"), ("b.yaml", b"second")], b"first");
    holds(&[("./d/", b""), ("./d/a.yaml", b"first")], b"first");
    holds(
        &[("a.yaml", b"first"), ("pipeline.yaml", b"named")],
        b"named",
    );
    holds(
        &[("a.txt", b"first"), ("./pipeline.yaml", b"named")],
        b"named",
    );
    refuses(
        &[("a.txt", b"first"), ("d/pipeline.yaml", b"other")],
        "the archive has no pipeline.yaml, and its first file is `a.txt`; want one that ends in .yaml or .yml",
    );
    refuses(&[("d/", b"")], "the archive has no files");
}

#[test]
fn names_that_lead_out_of_an_archive_are_refused() {
    for name in ["../pipeline.yaml", "a/../../b.yaml", "a/.."] {
        let why = format!("the entry `{name}` leads out of the archive");
        refuses(&[("p.yaml", b"a: 1"), (name, b"x")], &why);
    }
    for (name, told) in [
        ("/etc/a.yaml", "/etc/a.yaml"),
        ("c:/a.yaml", "c:/a.yaml"),
        ("a\\b.yaml", "a\\\\b.yaml"),
    ] {
        let why = format!("the entry `{told}` has a name that is not a relative path");
        refuses(&[(name, b"x")], &why);
    }
}

#[test]
fn kfp_45_a_file_of_32_mib_is_taken_and_one_byte_more_is_not() {
    let largest = vec![b' '; LARGEST];
    assert_eq!(text("a.yaml", &largest).unwrap().len(), LARGEST);
    holds(&[("a.yaml", &largest)], &largest);
    let larger = vec![b' '; LARGEST + 1];
    assert_eq!(
        text("a.yaml", &larger).unwrap_err().to_string(),
        "File size too large (33554433 bytes). Maximum supported size: 33554432. Upload a smaller file"
    );
    for bytes in [
        zipped(&[("a.yaml", &larger)]),
        tarred(&[("a.yaml", &larger)]),
    ] {
        assert!(bytes.len() < 1 << 20);
        assert!(matches!(text("a", &bytes), Err(Error::TooLarge(..))));
    }
}

#[test]
fn bombs_are_refused() {
    let zeros = vec![0; 80 << 20];
    let passed_over = tarred(&[("a.bin", &zeros), ("pipeline.yaml", b"a: 1")]);
    assert!(passed_over.len() < 1 << 20);
    let error = text("a", &passed_over).unwrap_err();
    assert!(error.to_string().contains("once decompressed"), "{error}");
    let many: Vec<_> = (0..1001).map(|at| format!("{at}.yaml")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), &b"a"[..])).collect();
    refuses(&many, "more than 1000 entries");
    holds(&many[..1000], b"a");
}

#[test]
fn broken_archives_are_refused() {
    for whole in [
        zipped(&[("pipeline.yaml", b"a: 1")]),
        tarred(&[("pipeline.yaml", b"a: 1")]),
    ] {
        for end in [2, 10, whole.len() / 2, whole.len() - 20] {
            let cut = text("a", &whole[..end]);
            assert!(
                matches!(cut, Err(Error::Archive(_)))
                    || cut.is_ok_and(|text| text.as_ref() == b"a: 1"),
                "{end}"
            );
        }
    }
    assert!(matches!(
        text("a", b"PK\x06\x07PK\x05\x06"),
        Err(Error::Archive(_))
    ));
}
