//! Which layer a symbol belongs to.

/// A layer, and the words by which its symbols are known. The first row that has a word counts.
struct Layer {
    name: &'static str,
    words: &'static [&'static str],
}

/// Where the kernel's symbols come from, as `perf` says it.
const KERNEL: &str = "[k";

/// Notifications by the kernel.
const NOTIFICATION: &[&str] = &["eventfd", "try_to_wake_up", "ttwu", "futex_wake"];

const LAYERS: &[Layer] = &[
    Layer {
        name: "checksum",
        words: &["crc_fast", "crc32"],
    },
    Layer {
        name: "copy",
        words: &[
            "memmove",
            "memcpy",
            "memset",
            "copy_nonoverlapping",
            "drives::ram::memory",
            "block::buf",
            // Blocks are copied and summed in one pass.
            "checksum::",
        ],
    },
    Layer {
        name: "notification",
        words: &["event::EventFd", "event::EventSlot", "Server::notify"],
    },
    Layer {
        name: "front end",
        words: &["frontend_", "vm_memory", "virtio_queue", "vhost"],
    },
    Layer {
        name: "memory",
        words: &["mi_", "malloc", "alloc::raw_vec", "__rust_", "block::dma"],
    },
    Layer {
        name: "clock",
        words: &["clock_gettime", "std::time", "Timespec", "now_ns"],
    },
    Layer {
        name: "policy",
        words: &[
            "placement::",
            "tiering::access_stats",
            "tiering::settings",
            "qos",
            "limits",
        ],
    },
    Layer {
        name: "map",
        words: &["format::chunk", "engine::map"],
    },
    Layer {
        name: "space",
        words: &["engine::space"],
    },
    Layer {
        name: "journal",
        words: &[
            "engine::wal",
            "journal",
            "barrier",
            "format::record",
            "checkpoint",
        ],
    },
    Layer {
        name: "drive",
        words: &["drives::", "engine::vdrive", "engine::device", "io_uring"],
    },
    Layer {
        name: "shard",
        words: &["engine::"],
    },
    Layer {
        name: "loop",
        words: &[
            "reactor::",
            "futures_",
            "block::device",
            "block::oneshot",
            "core::task",
            "alloc::task",
            "raw_waker",
            "future",
        ],
    },
];

/// The layer of a symbol in a file (a program, a library, or the kernel).
pub fn layer(file: &str, symbol: &str) -> &'static str {
    if file.starts_with(KERNEL) || symbol.starts_with("[k]") {
        let tells = NOTIFICATION.iter().any(|word| symbol.contains(word));
        return if tells { "notification" } else { "kernel" };
    }
    let found = LAYERS
        .iter()
        .find(|layer| layer.words.iter().any(|word| symbol.contains(word)));
    found.map_or("the rest", |layer| layer.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_known_by_their_layer() {
        for (file, symbol, wanted) in [
            ("libc.so.6", "[.] __memmove_avx512_unaligned_erms", "copy"),
            (
                "convect",
                "[.] crc_fast::crc32::fusion::crc32_iscsi",
                "checksum",
            ),
            ("convect", "[.] checksum::fold::copy", "copy"),
            ("convect", "[.] checksum::sum::crc32c", "checksum"),
            ("convect", "[.] format::chunk::ChunkPage::crc", "map"),
            ("convect", "[.] placement::policy::Policy::used", "policy"),
            (
                "convect",
                "[.] engine::vdrive::device::VdriveIo::read_fragment",
                "drive",
            ),
            ("convect", "[.] engine::io::fast_path::read", "shard"),
            ("convect", "[.] engine::map::page::find", "map"),
            (
                "convect",
                "[.] frontend_vhost_user_blk::server::Server::answer_all",
                "front end",
            ),
            ("[vdso]", "[.] __vdso_clock_gettime", "clock"),
            (
                "[kernel.kallsyms]",
                "[k] eventfd_signal_mask",
                "notification",
            ),
            (
                "[kernel.kallsyms]",
                "[k] finish_task_switch.isra.0",
                "kernel",
            ),
            ("convect", "[.] something_else", "the rest"),
        ] {
            assert_eq!(layer(file, symbol), wanted, "{symbol}");
        }
    }
}
