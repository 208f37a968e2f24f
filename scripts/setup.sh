#!/usr/bin/env bash
# Installs what is missing, and nothing when nothing is: setup.sh build|profile|demo|test|fuzz|api|compare|count|web.
# Left out: anything that is not a package or the Rust toolchain; it changes no configuration.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

# One row each: the Debian and Ubuntu package, and a command or a path (a pattern) that shows
# that it is there, from whatever source.
build_packages=(
  "build-essential cc"
  "ca-certificates /etc/ssl/certs/ca-certificates.crt"
  "curl curl"
)
demo_packages=(
  "${build_packages[@]}"
  "fio fio"
  "qemu-utils qemu-nbd"
  "libnbd-bin nbdinfo"
  "fuse3 fusermount3"
)
compare_packages=(
  "${demo_packages[@]}"
  "qemu-system-common qemu-storage-daemon"
  "nbdkit nbdkit"
  "nbd-server nbd-server"
  "linux-perf perf"
  "tgt tgtd"
)
web_packages=(
  "nodejs node"
  "npm npm"
)
fuzz_packages=(
  "${build_packages[@]}"
  "g++ c++"
)
api_packages=(
  "${build_packages[@]}"
  "python3 python3"
  "python3-venv /usr/lib/python3*/ensurepip"
  "util-linux setpriv"
)
count_packages=(
  "${build_packages[@]}"
  "valgrind valgrind"
)
test_packages=(
  "${demo_packages[@]}"
  "${fuzz_packages[@]}"
  "${count_packages[@]}"
  "${api_packages[@]}"
  "${web_packages[@]}"
  "chromium chromium"
  "fonts-dejavu-core /usr/share/fonts/truetype/dejavu"
  "openssl openssl"
  "python3 python3"
  "python3-libnbd nbdsh"
  "slirp4netns slirp4netns"
  "libiscsi-bin iscsi-test-cu"
  "qemu-block-extra /usr/lib/*/qemu/block-iscsi.so"
  "qemu-system-x86 qemu-system-x86_64"
  "busybox-static /bin/busybox"
  "cpio cpio"
  "dmsetup dmsetup"
  "syslinux syslinux"
  "mtools mcopy"
  "dosfstools mkfs.vfat"
  "kmod modprobe"
  "xz-utils xz"
  "mount mount"
  "fdisk sfdisk"
  "util-linux findmnt"
  "e2fsprogs mkfs.ext4"
  "xfsprogs mkfs.xfs"
  "btrfs-progs mkfs.btrfs"
  "postgresql /usr/lib/postgresql/*/bin/pg_ctl"
  "prometheus promtool"
  "python3-prometheus-client /usr/lib/python3/dist-packages/prometheus_client"
  "python3-yaml /usr/lib/python3/dist-packages/yaml"
  "python3-aiosmtpd /usr/lib/python3/dist-packages/aiosmtpd"
  "apparmor apparmor_parser"
  "binutils strip"
  "dpkg-dev dpkg-parsechangelog"
  "gnupg gpg"
  "lintian lintian"
  "rpm rpmbuild"
  "systemd systemd-analyze"
)

is_there() {
  case "$1" in
    /*) compgen -G "$1" >/dev/null ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
  esac
}

missing_packages() {
  local row
  for row in "$@"; do
    is_there "${row#* }" || printf '%s\n' "${row%% *}"
  done
}

# As root, by sudo that asks nothing, or not at all: then the line to run is printed.
run_as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
  else
    return 77
  fi
}

install_packages() {
  local missing=("$@") apt=(apt-get -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3) attempt
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "missing packages: ${missing[*]}"
  command -v apt-get >/dev/null 2>&1 ||
    fail "this system has no apt-get; install what gives these Debian packages: ${missing[*]}"
  if [ "$(id -u)" != 0 ] && ! { command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; }; then
    fail "not root and sudo asks for a password; run this line, then this command again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
  fi
  export DEBIAN_FRONTEND=noninteractive
  for attempt in 1 2 3; do
    run_as_root "${apt[@]}" update -q ||
      echo "the package index could not be refreshed (attempt $attempt); going on with the old one"
    if run_as_root "${apt[@]}" install -y -q --no-install-recommends "${missing[@]}"; then
      return 0
    fi
    echo "the installation failed (attempt $attempt of 3)"
    sleep 5
  done
  fail "could not install: ${missing[*]}; run the line yourself to see why:
  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
}

install_rust() {
  local version installer
  find_rust && return 0
  version="$(wanted_rust)"
  step "setup: Rust $version"
  # What other packages only refer to is found, too, with nothing to show.
  if ! command -v rustup >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && command -v apt-cache >/dev/null 2>&1 &&
    [ -n "$(apt-cache show rustup 2>/dev/null)" ]; then
    install_packages rustup
  fi
  if ! command -v rustup >/dev/null 2>&1; then
    installer="$(mktemp)"
    curl --proto '=https' --tlsv1.2 -sSf --retry 3 -o "$installer" https://sh.rustup.rs ||
      fail "the Rust installer could not be fetched; install Rust $version by hand (https://rustup.rs)"
    sh "$installer" -y -q --no-modify-path --profile minimal --default-toolchain none ||
      fail "the Rust installer failed; install Rust $version by hand (https://rustup.rs)"
    rm -f "$installer"
    PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
  fi
  rustup toolchain install "$version" --profile minimal --component rustfmt --component clippy ||
    fail "rustup could not install Rust $version; see its message above"
  find_rust || fail "Rust $version was installed but does not run"
}

# What merges the profiles of a load, for a build that is compiled by them.
install_llvm_tools() {
  [ ! -x "$(llvm_profdata)" ] || return 0
  command -v rustup >/dev/null 2>&1 ||
    fail "this Rust has no llvm-tools and there is no rustup to add them: install rustup (https://rustup.rs)"
  step "setup: llvm-tools"
  rustup component add --toolchain "$(rustc --print sysroot | sed 's,.*/,,')" llvm-tools ||
    fail "llvm-tools could not be installed; run the line yourself to see why: rustup component add llvm-tools"
  [ -x "$(llvm_profdata)" ] || fail "llvm-tools were installed, but there is no $(llvm_profdata)"
}

level="${1:-}"
case "$level" in
  build) rows=("${build_packages[@]}") ;;
  # The load has FUSE exports where they can be mounted.
  profile) rows=("${build_packages[@]}" "fuse3 fusermount3") ;;
  demo) rows=("${demo_packages[@]}") ;;
  test) rows=("${test_packages[@]}") ;;
  fuzz) rows=("${fuzz_packages[@]}") ;;
  web) rows=("${web_packages[@]}") ;;
  api) rows=("${api_packages[@]}") ;;
  compare) rows=("${compare_packages[@]}") ;;
  count) rows=("${count_packages[@]}") ;;
  *) fail "usage: setup.sh build|profile|demo|test|fuzz|api|compare|count|web" ;;
esac
step "setup: packages to $level"
mapfile -t missing < <(missing_packages "${rows[@]}")
install_packages ${missing[@]+"${missing[@]}"}
# The guest of the end-to-end tests is Debian's own kernel, which apt downloads by its index.
if [ "$level" = test ] && command -v apt-cache >/dev/null 2>&1 &&
  ! apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1; then
  run_as_root apt-get -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 update -q ||
    echo "the package index could not be refreshed; the guest's kernel may be missing"
fi
[ "$level" = web ] && exit 0
install_rust
[ "$level" != profile ] || install_llvm_tools
echo "$(rustc --version), $(cargo --version)"
