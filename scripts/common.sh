# shellcheck shell=bash
# Sourced by dev and every script: what they say, where things are, which Rust is used.
# Holds for an environment as sparse as `env -i`: HOME, USER, LANG and a terminal may be missing.

root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"
export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin"
export LC_ALL=C.UTF-8
if [ -z "${HOME:-}" ]; then
  HOME="$(getent passwd "$(id -u)" | cut -d: -f6)" || HOME=""
  [ -n "$HOME" ] || HOME=/tmp
  export HOME
fi

step() { printf '== %s\n' "$*"; }

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Names the step and the line, so that a failure is never silent.
report_error() {
  local status=$1 line=$2 file=$3 text=$4
  printf 'error: exit code %s in %s line %s: %s\n' "$status" "$file" "$line" "$text" >&2
}
trap 'report_error "$?" "$LINENO" "${BASH_SOURCE[0]}" "$BASH_COMMAND"' ERR

target_dir() { printf '%s\n' "${CARGO_TARGET_DIR:-$root/target}"; }

# Whether version $1 is at least version $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

wanted_rust() { sed -n 's/^channel *= *"\([^"]*\)".*/\1/p' "$root/rust-toolchain.toml"; }

# Whether the Rust that would run here (with rustup toolchain $1, where given) is good enough.
rust_is_good() {
  local version
  if [ -n "${1:-}" ]; then
    local -x RUSTUP_TOOLCHAIN="$1"
  fi
  version="$(cd "$root" && RUSTUP_AUTO_INSTALL=0 rustc --version 2>/dev/null | cut -d' ' -f2)" || return 1
  [ -n "$version" ] && at_least "$version" "$(wanted_rust)" || return 1
  (cd "$root" && RUSTUP_AUTO_INSTALL=0 cargo --version && RUSTUP_AUTO_INSTALL=0 cargo fmt --version &&
    RUSTUP_AUTO_INSTALL=0 cargo clippy --version) >/dev/null 2>&1
}

# Picks a Rust that is there; returns 1 when none is good. A toolchain under another name
# (`stable` of the same version) serves as well as the pinned one.
find_rust() {
  local bin="${CARGO_HOME:-$HOME/.cargo}/bin" toolchain
  case ":$PATH:" in *":$bin:"*) ;; *) PATH="$PATH:$bin" ;; esac
  rust_is_good && return 0
  command -v rustup >/dev/null 2>&1 || return 1
  for toolchain in $(rustup toolchain list 2>/dev/null | cut -d' ' -f1 | grep -v nightly || true); do
    if rust_is_good "$toolchain"; then
      export RUSTUP_TOOLCHAIN="$toolchain"
      return 0
    fi
  done
  return 1
}

use_rust() {
  find_rust || fail "no Rust $(wanted_rust) or newer is here; run ./dev setup build"
}

# Where rustup's llvm-tools put what merges profiles; it may not be there (./dev setup profile installs it).
llvm_profdata() {
  printf '%s/lib/rustlib/%s/bin/llvm-profdata\n' "$(rustc --print sysroot)" "$(rustc -vV | sed -n 's/^host: //p')"
}

# profiled_build PACKAGE LOAD [CARGO-WORD...]: builds a package with the profile of a load of its own, by which the compiler
# knows the ways that are taken; the code is the same. LOAD is a function of the script, called with the folder of the programs
# that count: they write what they counted at their end, which therefore has to be one by themselves or by SIGTERM.
# Sets `programs` to the folder of the finished ones. Apart from other builds, in target/profiled/PACKAGE.
# Not to be called within a condition: there bash goes on after what fails.
profiled_build() {
  local package=$1 load=$2 host folder
  shift 2
  host="$(rustc -vV | sed -n 's/^host: //p')"
  folder="$(target_dir)/profiled/$package"
  with_flags() { # FOLDER FLAGS CARGO-WORD...
    CARGO_TARGET_DIR="$folder/$1" RUSTFLAGS="$2" cargo build --release --target "$host" -p "$package" "${@:3}"
  }
  with_flags first "-Cprofile-generate=$folder/raw" "$@"
  rm -rf "$folder/raw"
  "$load" "$folder/first/$host/release"
  "$(llvm_profdata)" merge -o "$folder/load.profdata" "$folder/raw"
  rm -rf "$folder/raw"
  with_flags second "-Cprofile-use=$folder/load.profdata" "$@"
  programs="$folder/second/$host/release"
}
