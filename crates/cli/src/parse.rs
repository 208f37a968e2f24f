//! Parsers of arguments that clap does not read: objects, drives, vdrives, protocol parameters.

use crate::Failure;
use api::v1::{FrontEnd, Layout, Tier, VdriveSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Default stripe chunk: bytes on one drive before the next.
const CHUNK_DEFAULT: u64 = 64 << 10;

/// Names of the host's block devices that do not change.
const USUAL_FOLDER: &str = "/dev/disk/by-id";

fn usage<T>(message: String) -> Result<T, Failure> {
    Err(Failure::Usage(message))
}

/// Parses `POOL/VOL`.
///
/// # Errors
/// When it is malformed.
pub fn object(text: &str) -> Result<(&str, &str), Failure> {
    match text.split_once('/') {
        Some((pool, name)) if !pool.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok((pool, name))
        }
        _ => usage(format!(
            "'{text}' is not a volume: write POOL/VOL, like tank/vm1"
        )),
    }
}

/// Parses a drive specification; a relative file path is resolved against `folder`, since the
/// daemon runs in another directory. Without a folder the file is on another host.
///
/// # Errors
/// When it is not a drive, or is relative and there is no folder.
pub fn drive_spec(text: &str, folder: Option<&Path>) -> Result<String, Failure> {
    if text.starts_with('/') {
        return Ok(format!("file:{text}"));
    }
    let Some((kind, rest)) = text.split_once(':') else {
        return usage(format!(
            "'{text}' is not a drive: write an absolute path, file:PATH, nvme:/dev/ngXnY, \
             ram:NAME?size=1G, null:NAME?size=1T or model:PROFILE:SPEC"
        ));
    };
    known("kind of drive", kind, &daemon::drive_kinds())?;
    match kind {
        "file" if rest.is_empty() => usage("'file:' has no path: write file:PATH".to_owned()),
        "file" if rest.starts_with('/') => Ok(text.to_owned()),
        "file" => match folder {
            Some(folder) => Ok(format!("file:{}", folder.join(rest).display())),
            None => usage(format!(
                "'{text}' is relative to a directory of this host, but the daemon is on another \
                 host: write the absolute path there"
            )),
        },
        "model" => match rest.split_once(':') {
            Some((model, inner)) => {
                let profile = model.split(',').next().unwrap_or(model);
                known("modelled drive", profile, &daemon::drive_profiles())?;
                Ok(format!("model:{model}:{}", drive_spec(inner, folder)?))
            }
            None => usage(format!(
                "'{text}' is not a modelled drive: write model:PROFILE:SPEC, like \
                 model:hdd-7200:/tmp/a"
            )),
        },
        _ => Ok(text.to_owned()),
    }
}

/// Directories in which the daemon searches for drives: the given ones; without any, and without drives, that of
/// the host's block devices. `here`: where relative ones are, if the daemon is on this host.
///
/// # Errors
/// A usage error for a relative one of another host.
pub fn search_folders(
    drives: &[String],
    folders: &[PathBuf],
    here: Option<&Path>,
) -> Result<Vec<String>, Failure> {
    if drives.is_empty() && folders.is_empty() {
        return Ok(vec![USUAL_FOLDER.to_owned()]);
    }
    let absolute = |folder: &PathBuf| match (folder.is_absolute(), here) {
        (true, _) => Ok(folder.display().to_string()),
        (false, Some(here)) => Ok(here.join(folder).display().to_string()),
        (false, None) => usage(format!(
            "'{}' is relative to a directory of this host, but the daemon is on another host: \
             write the absolute path there",
            folder.display()
        )),
    };
    folders.iter().map(absolute).collect()
}

fn known(what: &str, name: &str, names: &[&str]) -> Result<(), Failure> {
    match names.contains(&name) {
        true => Ok(()),
        false => usage(format!(
            "unknown {what} '{name}': choose one of {}",
            names.join(", ")
        )),
    }
}

fn tier(word: &str) -> Option<Tier> {
    match word {
        "fast" => Some(Tier::Fast),
        "slow" => Some(Tier::Slow),
        _ => None,
    }
}

fn layout(word: &str) -> Result<Option<Layout>, Failure> {
    Ok(match word {
        "concat" => Some(Layout::Concat),
        "mirror" => Some(Layout::Mirror),
        "stripe" => Some(Layout::Stripe {
            chunk: CHUNK_DEFAULT,
        }),
        _ => match word.strip_prefix("stripe:") {
            Some(chunk) => Some(Layout::Stripe {
                chunk: units::parse_bytes(chunk)
                    .map_err(|error| Failure::Usage(error.to_string()))?,
            }),
            None => None,
        },
    })
}

/// Parses one or more `fast|slow [concat|stripe[:CHUNK]|mirror] SPEC...`.
///
/// # Errors
/// When a word is unexpected, a vdrive has no drive, or as [`drive_spec`].
pub fn vdrives(words: &[String], folder: Option<&Path>) -> Result<Vec<VdriveSpec>, Failure> {
    let mut found: Vec<VdriveSpec> = Vec::new();
    let mut fresh = false;
    for word in words {
        if let Some(tier) = tier(word) {
            found.push(VdriveSpec {
                tier,
                layout: Layout::Concat,
                drives: Vec::new(),
            });
            fresh = true;
            continue;
        }
        let Some(vdrive) = found.last_mut() else {
            return usage(format!(
                "'{word}' precedes the tier: write fast or slow before its drives"
            ));
        };
        match layout(word)? {
            Some(layout) if fresh => vdrive.layout = layout,
            Some(_) => {
                return usage(format!(
                    "'{word}' follows a drive: write the layout right after fast or slow"
                ));
            }
            None => vdrive.drives.push(drive_spec(word, folder)?),
        }
        fresh = false;
    }
    match found.iter().find(|vdrive| vdrive.drives.is_empty()) {
        Some(_) => usage("a vdrive has no drives: write drives after fast or slow".to_owned()),
        None if found.is_empty() => {
            usage("no vdrive given: write fast or slow, and drives".to_owned())
        }
        None => Ok(found),
    }
}

/// Help on the parameters of a protocol.
fn front_end_help(row: &FrontEnd) -> String {
    let lines: Vec<String> = row
        .parameters
        .iter()
        .map(|parameter| {
            let need = if parameter.required {
                ""
            } else {
                " (optional)"
            };
            format!(
                "  --{} VALUE{need}\n      {}",
                parameter.name, parameter.about
            )
        })
        .collect();
    format!("{}: {}\n{}", row.name, row.about, lines.join("\n"))
}

/// Parses `--KEY VALUE` or `--KEY=VALUE` for the parameters of a protocol.
///
/// # Errors
/// When a word is unexpected, a key is unknown or repeated, or a required one is missing.
pub fn front_end_parameters(
    row: &FrontEnd,
    words: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    let mut found = BTreeMap::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(key) = word.strip_prefix("--") else {
            return usage(format!(
                "'{word}' is not a parameter: write --KEY VALUE\n{}",
                front_end_help(row)
            ));
        };
        let (key, value) = match key.split_once('=') {
            Some((key, value)) => (key, value.to_owned()),
            None => match words.next() {
                Some(value) => (key, value.clone()),
                None => return usage(format!("--{key} has no value: write --{key} VALUE")),
            },
        };
        if !row.parameters.iter().any(|known| known.name == key) {
            return usage(format!(
                "{} has no parameter --{key}\n{}",
                row.name,
                front_end_help(row)
            ));
        }
        if found.insert(key.to_owned(), value).is_some() {
            return usage(format!("--{key} is given twice: write it once"));
        }
    }
    let missing = row
        .parameters
        .iter()
        .find(|known| known.required && !found.contains_key(&known.name));
    match missing {
        Some(missing) => usage(format!(
            "{} requires --{}\n{}",
            row.name,
            missing.name,
            front_end_help(row)
        )),
        None => Ok(found),
    }
}
