#!/usr/bin/env bash
# The web page: web.sh build|test|bench. `build` makes web/dist out of web/src; `test` looks whether what is committed
# there is what that makes, whether the types are those of the OpenAPI document, and runs the page's tests, those in
# Chromium against the daemon that is built already. `bench NAME` runs a benchmark in Chromium against the release build.
set -Eeuo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
cd "$root/web"

# The packages of the lock file, from the registry, once.
install_packages() {
  cmp -s package-lock.json node_modules/.installed && return 0
  # Chromium is Debian's.
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund ||
    fail "the page's packages could not be installed; run the line yourself to see why: (cd web && npm ci)"
  cp package-lock.json node_modules/.installed
}

# Debian's Node may be too old for anything but to install the one that the lock file names.
use_node() {
  local bin
  for bin in node_modules/node-linux-*/bin; do
    PATH="$root/web/$bin:$PATH"
  done
}

made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT

is_the_same() { # WHAT COMMITTED MADE
  diff -r "$2" "$3" >/dev/null || fail "$1 is not what its sources make: run ./dev web and commit it"
}

build() {
  npm run --silent types
  npm run --silent build
}

run_tests() {
  local passed=0 failed=0 status=0
  npx --no-install openapi-typescript ../docs/api/openapi.json -o "$made/schema.d.ts" >/dev/null
  is_the_same "web/src/api/schema.d.ts" src/api/schema.d.ts "$made/schema.d.ts"
  npm run --silent check
  npx --no-install vite build --outDir "$made/dist" --emptyOutDir >/dev/null
  is_the_same "web/dist" dist "$made/dist"
  npx --no-install vitest run --reporter=json --outputFile="$made/unit.json" || status=1
  CONVECT="$(target_dir)/debug/convect" PLAYWRIGHT_JSON_OUTPUT_NAME="$made/browser.json" \
    npx --no-install playwright test --reporter=list,json || status=1
  passed="$(node -p "require('$made/unit.json').numPassedTests + require('$made/browser.json').stats.expected")"
  failed="$(node -p "require('$made/unit.json').numFailedTests + require('$made/browser.json').stats.unexpected")"
  echo "web: $passed passed, $failed failed"
  return "$status"
}

install_packages
use_node
case "${1:-}" in
  build) build ;;
  test) run_tests ;;
  bench) CONVECT="$(target_dir)/release/convect" npx --no-install playwright test --config bench.config.ts "$2" ;;
  *) fail "usage: web.sh build|test|bench NAME" ;;
esac
