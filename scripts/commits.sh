# shellcheck shell=bash
# Programs of two commits side by side. Sourced by scripts that compare them.
#
#   build_commits FOLDER TARGET COMMIT OTHER CARGO-WORD...   builds at both commits, in a tree of each (FOLDER/tree-1 and
#                                                            tree-2), and puts the executables into FOLDER/1 and FOLDER/2
#   remove_trees FOLDER                                      for the script's end

remove_trees() { # FOLDER
  local tree
  for tree in "$1"/tree-*; do
    git worktree remove --force "$tree" 2>/dev/null || true
  done
  rm -rf "$1"
}

build_commits() { # FOLDER TARGET COMMIT OTHER CARGO-WORD...
  local folder=$1 target=$2 number=0 commit name
  for commit in "$3" "$4"; do
    number=$((number + 1))
    name="$(git rev-parse --verify --quiet "$commit^{commit}")" || fail "there is no commit '$commit'"
    git worktree add --quiet --detach "$folder/tree-$number" "$name"
    [ -d "$folder/tree-$number/crates/bench" ] ||
      fail "commit '$commit' is older than the cases (crates/bench): take a later one"
    step "build $commit"
    mkdir "$folder/$number"
    # The dependencies are built once for both.
    (cd "$folder/tree-$number" && CARGO_TARGET_DIR="$target" cargo build --message-format json-render-diagnostics "${@:5}") |
      sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | xargs -r cp -t "$folder/$number"
  done
}
