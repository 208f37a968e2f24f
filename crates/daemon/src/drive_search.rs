//! Which drives to examine for pools: those of folders, and those that a pool's labels name.
//!
//! Nothing is opened here. Whoever opens a drive checks its kind again, since a name can change its
//! meaning in between.

use drives::SIZE_MIN;
use std::fs::{FileType, Metadata};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Maximum number of entries of a folder that are examined.
const ENTRIES_MAX: usize = 4096;

fn can_be_a_drive(kind: FileType) -> bool {
    kind.is_file() || kind.is_block_device()
}

/// Specifications of the files and block devices in a folder, by name. Links are followed; FIFOs, sockets,
/// folders, hidden files and files too small for a drive are left out.
///
/// # Errors
/// A sentence: the folder is no absolute path, cannot be read, or has more than 4,096 entries.
pub fn drives_in(folder: &str) -> Result<Vec<String>, String> {
    let path = Path::new(folder);
    if !path.is_absolute() {
        return Err(format!("'{folder}' is no absolute path: write one"));
    }
    let cannot = |error: std::io::Error| {
        format!("cannot search the directory {folder} for drives: {error}; name the drives instead")
    };
    let mut found = Vec::new();
    for (count, entry) in std::fs::read_dir(path).map_err(cannot)?.enumerate() {
        if count == ENTRIES_MAX {
            return Err(format!(
                "the directory {folder} has more than {ENTRIES_MAX} entries: name the drives instead"
            ));
        }
        let path = entry.map_err(cannot)?.path();
        let Some(text) = path.to_str() else { continue };
        let is_hidden = |name: &str| name.starts_with('.');
        let name = path.file_name().and_then(|name| name.to_str());
        let data = std::fs::metadata(&path);
        let fits = |data: Metadata| {
            let kind = data.file_type();
            can_be_a_drive(kind) && (kind.is_block_device() || data.len() >= SIZE_MIN)
        };
        if !name.is_none_or(is_hidden) && data.is_ok_and(fits) {
            // The last question mark of a specification ends the path.
            let end = if text.contains('?') { "?" } else { "" };
            found.push(format!("file:{text}{end}"));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Whether a specification that a label contains names a drive that is there. A label is not trusted to have a
/// file created or memory taken.
pub fn is_there(spec: &str) -> bool {
    let Some((path, _)) = drives::file_path(spec) else {
        return spec.starts_with("nvme:");
    };
    std::fs::metadata(path).is_ok_and(|data| can_be_a_drive(data.file_type()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn files_are_found_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["b.img", "a?size=1M", ".hidden"] {
            let file = File::create(path(name)).unwrap();
            file.set_len(SIZE_MIN).unwrap();
        }
        std::fs::write(path("small"), "log").unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        symlink(path("b.img"), path("link")).unwrap();
        symlink(path("gone"), path("dangling")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        let root = folder.path().to_str().unwrap();
        let expected = ["a?size=1M?", "b.img", "link"].map(|name| format!("file:{root}/{name}"));
        assert_eq!(drives_in(root).unwrap(), expected);
        for spec in &expected {
            assert!(is_there(spec), "{spec}");
        }
        assert!(!is_there(&format!("file:{root}/new.img?size=1G")));
        assert!(!is_there(&format!("file:{root}/socket")));
        assert!(!is_there("ram:a?size=1G"));
        assert!(!path("new.img").exists());
    }

    #[test]
    fn what_cannot_be_searched_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap();
        assert!(drives_in("tmp").unwrap_err().contains("absolute"));
        let gone = format!("{root}/gone");
        assert!(drives_in(&gone).unwrap_err().contains(&gone));
        for number in 0..=ENTRIES_MAX {
            std::fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        assert!(drives_in(root).unwrap_err().contains("more than 4096"));
    }
}
