# What the scripts of this folder share: sourced, not run.

# Copies programs with their libraries, at the paths that they were linked with: take_programs ROOT TOOL...
take_programs() {
    to=$1
    shift
    for tool in "$@"; do
        path=$(command -v "$tool")
        mkdir -p "$to/sbin"
        cp -L "$path" "$to/sbin/$tool"
        ldd "$path" | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "$to$(dirname "$library")"
            cp -L "$library" "$to$library"
        done
    done
}

# Copies the libraries that programs below ROOT need and that are not there, at the paths that they have
# here: take_libraries_of_all ROOT
take_libraries_of_all() {
    tree=$1
    # What only opens when it is needed: threads that are cancelled.
    set -- /lib/x86_64-linux-gnu/libgcc_s.so.1
    for library in "$@"; do
        mkdir -p "$tree$(dirname "$library")"
        cp -L "$library" "$tree$library"
    done
    find "$tree" -type f \( -perm -u+x -o -name '*.so*' \) | while read -r file; do
        LD_LIBRARY_PATH=$tree/lib:$tree/lib/x86_64-linux-gnu:$tree/usr/lib/x86_64-linux-gnu \
            ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | grep -v "^$tree" || true
    done | sort -u | while read -r library; do
        [ -e "$library" ] || continue
        mkdir -p "$tree$(dirname "$library")"
        cp -L "$library" "$tree$library"
    done
}

# Builds one initramfs of a guest's root, a script and its parameters: compose OUT FOLDER ROOT SCRIPT MORE [KEY=VALUE]...
# ROOT is a root of FOLDER, MORE another archive of it, or nothing; what lies in GUEST_FILES goes along. The kernel
# unpacks archives that follow one another into the same root.
compose() {
    out=$1 folder=$2 base=$3 script=$4 more=$5
    shift 5
    mkdir -p "$out.root"
    [ -z "${GUEST_FILES:-}" ] || cp -a "$GUEST_FILES/." "$out.root/"
    cp "$script" "$out.root/script"
    for pair in "$@"; do
        printf "%s='%s'\n" "${pair%%=*}" "${pair#*=}"
    done >"$out.root/parameters"
    (cd "$out.root" && find . | cpio -o -H newc --quiet) >"$out.cpio"
    cat "$out.cpio" "$folder/$base" ${more:+"$folder/$more"} >"$out"
}

# What the kernel is told.
guest_line="console=ttyS0 quiet panic=-1 mitigations=off"

# Makes an image that a BIOS boots, a FAT with a kernel and its initramfs: make_bootable IMAGE KERNEL INITRAMFS
make_bootable() {
    truncate -s 40M "$1"
    mkfs.vfat "$1" >/dev/null
    printf 'DEFAULT guest\nLABEL guest\nKERNEL vmlinuz\nINITRD initramfs\nAPPEND %s\n' "$guest_line" >"$1.cfg"
    mcopy -i "$1" "$2" ::vmlinuz
    mcopy -i "$1" "$3" ::initramfs
    mcopy -i "$1" "$1.cfg" ::syslinux.cfg
    syslinux --install "$1"
}
