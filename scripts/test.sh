#!/usr/bin/env bash
# Builds Shardwise in build/dev and runs its tests: scripts/test.sh [CMAKE-OPTION…]. Installs what is
# missing. Safe to run again. Benchmarks are built with -D SHARDWISE_BENCHMARKS=ON. Tests that take
# minutes by design are run by `ctest --preset long`. Exit codes: 0 all passed, 3 something is missing
# (one line says what to do), else a failure to build or of a test.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh

need_packages "${packages_build[@]}" "${packages_gui[@]}" "${packages_test[@]}"
need_build_folder build/dev 5
fetch_imgui
configure dev -D SHARDWISE_BENCHMARKS=OFF "$@"
say "building with $(nproc) cores"
build dev
say "built after $SECONDS s"
say "testing"
status=0
# Not by the test preset: what it excludes replaces what is excluded here.
run=(ctest --test-dir build/dev --output-on-failure --no-tests=error --parallel "$(nproc)")
"${run[@]}" -LE 'long|bench|processes' || status=$?
# What starts ranks, processes or windows may have a second try: it shares the machine's clock with
# whatever else runs. A second try is a defect to mend, and .ci/run names it.
"${run[@]}" -L processes --repeat until-pass:2 || status=$?
say "the ten slowest tests, seconds"
sed '/^---$/,$d' build/dev/Testing/Temporary/CTestCostData.txt | sort -k 3,3 -rn |
  awk 'NR <= 10 { printf "%8.1f  %s\n", $3, $1 }'
say "all of it after $SECONDS s"
exit "$status"
