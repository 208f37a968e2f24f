# What build.sh and thin.sh share: sourced, not run.

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
