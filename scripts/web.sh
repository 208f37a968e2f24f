#!/usr/bin/env bash
# The web page: web.sh build|unit|test|bench. `build` compiles web/src into web/dist; `unit` checks types and runs the
# tests that need no browser; `test` checks besides that what is committed in web/dist and the types of the OpenAPI
# document are up to date, and runs the tests in Chromium against the daemon that is built already. `bench NAME` runs a
# benchmark in Chromium against the release build.
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

# Debian's Node may be too old for anything but to install the one that the lock file names. The packages' programs are
# started as they are: npm would take half a second for each.
use_node() {
  local bin
  for bin in node_modules/.bin node_modules/node-linux-*/bin; do
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

# Prints the closing line: report STATUS, with what the runners wrote in $made.
report() {
  local passed=0 failed=0 browser="{stats:{expected:0,unexpected:0}}" unit="{numPassedTests:0,numFailedTests:1}"
  [ ! -f "$made/browser.json" ] || browser="require('$made/browser.json')"
  # Without it the types or the formatting are wrong, and no test ran.
  [ ! -f "$made/unit.json" ] || unit="require('$made/unit.json')"
  passed="$(node -p "($unit).numPassedTests + ($browser).stats.expected")"
  failed="$(node -p "($unit).numFailedTests + ($browser).stats.unexpected")"
  echo "web: $passed passed, $failed failed"
  return "$1"
}

unit_tests() {
  npm run --silent check &&
    vitest run --reporter=json --outputFile="$made/unit.json"
}

run_tests() {
  local status=0
  openapi-typescript ../docs/api/openapi.json -o "$made/schema.d.ts" >/dev/null
  is_the_same "web/src/api/schema.d.ts" src/api/schema.d.ts "$made/schema.d.ts"
  vite build --outDir "$made/dist" --emptyOutDir >/dev/null
  is_the_same "web/dist" dist "$made/dist"
  unit_tests || status=1
  CONVECT="$(target_dir)/debug/convect" PLAYWRIGHT_JSON_OUTPUT_NAME="$made/browser.json" \
    playwright test --reporter=list,json || status=1
  report "$status"
}

install_packages
use_node
case "${1:-}" in
  build) build ;;
  unit)
    status=0
    unit_tests || status=1
    report "$status"
    ;;
  test) run_tests ;;
  bench) CONVECT="$(target_dir)/release/convect" playwright test --config bench.config.ts "$2" ;;
  *) fail "usage: web.sh build|unit|test|bench NAME" ;;
esac
