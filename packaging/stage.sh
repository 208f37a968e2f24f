# shellcheck shell=bash
# shellcheck disable=SC2034  # several variables are for those who source this
# Sourced by build-deb.sh, build-rpm.sh and build-oci.sh: their options, and `stage`, which puts every packaged file
# into a folder. What is packaged is listed here alone; a format adds its own metadata only.
#
# Packages are reproducible: the same programs at the same commit give the same bytes. No time is later than that of
# the commit (SOURCE_DATE_EPOCH, to which dpkg-deb, rpmbuild and layout.py keep), owners are root, and archives are
# written in the order of names by one thread.
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../scripts/common.sh"
set -Eeuo pipefail
umask 022

usage() {
  cat >&2 <<TXT
usage: packaging/${0##*/} [--profiled] [--binaries FOLDER] [--architecture amd64|arm64] [--local PROGRAM] [FOLDER]

  --profiled       build with profile-guided optimisation (scripts/profiled.sh), which takes twice as long
  --binaries       package convect and convect-lab of this folder instead of building them
  --architecture   of the programs; another one than this machine's needs --binaries
  --local          a convect of the same version that runs here and writes the completions and manual pages; by
                   default the packaged one
  FOLDER           of the result, whose path is printed; by default $1
TXT
  exit 2
}

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || fail "$tool is missing: install it and try again"
  done
}

# Sets architecture, triple, elf_machine, binaries, local_program, folder, version, release and SOURCE_DATE_EPOCH, and
# builds the programs unless they are given.
prepare() { # DEFAULT_FOLDER ARG...
  local default=$1 build=release own
  shift
  case "$(uname -m)" in
    x86_64) own=amd64 ;;
    aarch64) own=arm64 ;;
    *) own="$(uname -m)" ;;
  esac
  architecture=$own binaries="" local_program="" folder=""
  while [ $# -gt 0 ]; do
    case "$1" in
      --profiled) build=profiled ;;
      --binaries | --architecture | --local)
        [ $# -gt 1 ] || usage "$default"
        case "$1" in
          --binaries) binaries="$(realpath -m -- "$2")" ;;
          --architecture) architecture=$2 ;;
          --local) local_program="$(realpath -m -- "$2")" ;;
        esac
        shift
        ;;
      -*) usage "$default" ;;
      *)
        [ -z "$folder" ] || usage "$default"
        folder="$(realpath -m -- "$1")"
        ;;
    esac
    shift
  done
  cd "$root"
  [ -n "$folder" ] || folder="$(realpath -m -- "$default")"
  # The machine's number in a program's header (ELF), in bytes as they are stored.
  case "$architecture" in
    amd64) triple=x86_64-linux-gnu elf_machine="3e 00" ;;
    arm64) triple=aarch64-linux-gnu elf_machine="b7 00" ;;
    *) fail "the architecture is amd64 or arm64, not '$architecture'" ;;
  esac
  version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
  [ -n "$version" ] || fail "Cargo.toml names no version"
  # Counts packages of one version.
  release=1
  if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH="$(git log -1 --format=%ct 2>/dev/null)" ||
      fail "this is no git repository: set SOURCE_DATE_EPOCH to the time of the release (date +%s)"
  fi
  export SOURCE_DATE_EPOCH
  need gzip install python3
  python3 -c 'import tomllib' 2>/dev/null || fail "python3 is older than 3.11: install a newer one and try again"
  use_rust
  if [ -z "$binaries" ]; then
    [ "$architecture" = "$own" ] || fail "this machine is $own: give programs for $architecture with --binaries FOLDER"
    build_programs "$build"
  fi
  check_programs
}

build_programs() { # release|profiled
  case "$1" in
    release) cargo build --release --locked -p convect-cli -p convect-lab --bin convect --bin convect-lab >&2 ;;
    profiled)
      bash scripts/setup.sh profile >&2
      bash scripts/profiled.sh --locked >&2
      ;;
  esac
  binaries="$(realpath -- "$(target_dir)/$1")"
}

# Wrong programs in a package would be noticed only by those who install it.
check_programs() {
  local name found
  for name in convect convect-lab; do
    [ -f "$binaries/$name" ] || fail "$binaries/$name does not exist"
    found="$(od -An -tx1 -j18 -N2 "$binaries/$name" | sed 's/^ //')"
    [ "$found" = "$elf_machine" ] || fail "$binaries/$name is not a program for $architecture"
  done
  local_program="${local_program:-$binaries/convect}"
  found="$("$local_program" --version 2>/dev/null)" ||
    fail "$local_program does not run here; name one that does: --local PROGRAM"
  [ "$found" = "convect $version" ] || fail "$local_program is '$found', but Cargo.toml says $version"
}

# The newest version of glibc whose symbols the programs use.
needed_glibc() { # ROOT
  grep -aohE 'GLIBC_2\.[0-9]+' "$1"/usr/bin/* | sort -Vu | tail -n 1 | sed 's/GLIBC_//'
}

# Symbols take a third of a program; a panic has its place without them.
strip_program() { # FILE
  local tool="$triple-strip"
  command -v "$tool" >/dev/null || tool="strip"
  "$tool" --strip-unneeded --remove-section=.comment --remove-section=.note "$1" 2>/dev/null ||
    echo "note: nothing here strips programs for $architecture" >&2
}

# Puts every packaged file into the folder ROOT. Folders of completions differ between distributions.
stage() { # ROOT ZSH_FOLDER
  local to=$1 name documents=$1/usr/share/doc/convect
  chmod 755 "$to"
  for name in convect convect-lab; do
    install -D -m 755 "$binaries/$name" "$to/usr/bin/$name"
    strip_program "$to/usr/bin/$name"
  done
  install -D -m 644 packaging/convect.service "$to/usr/lib/systemd/system/convect.service"
  install -D -m 644 packaging/convect.toml "$to/etc/convect/convect.toml"
  install -D -m 644 docs/api/openapi.json "$documents/openapi.json"
  install -D -m 644 docs/events.md "$documents/events.md"
  install -D -m 644 packaging/prometheus/convect.rules.yml "$to/usr/share/convect/prometheus/convect.rules.yml"
  install -D -m 644 packaging/grafana/convect.json "$to/usr/share/convect/grafana/convect.json"

  python3 -B packaging/sbom.py "$triple" >"$documents/convect.cdx.json"
  python3 -B packaging/notices.py "$triple" >"$documents/copyright"
  gzip -9n <CHANGELOG.md >"$documents/changelog.gz"

  complete bash "$to/usr/share/bash-completion/completions/convect"
  complete zsh "$to/$2/_convect"
  complete fish "$to/usr/share/fish/vendor_completions.d/convect.fish"
  "$local_program" man "$to/usr/share/man/man1" >&2
  install -d "$to/usr/share/man/man5"
  mv "$to/usr/share/man/man1/convect.toml.5" "$to/usr/share/man/man5/"
  gzip -9n "$to"/usr/share/man/man1/*.1 "$to"/usr/share/man/man5/*.5
}

complete() { # SHELL FILE
  install -d "${2%/*}"
  "$local_program" completions "$1" >"$2"
}
