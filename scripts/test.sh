#!/usr/bin/env bash
# Builds Shardwise in build/dev and runs its tests: scripts/test.sh [CMAKE-OPTION…]. Installs what is
# missing. Safe to run again. Benchmarks are built with -D SHARDWISE_BENCHMARKS=ON. Tests that take
# minutes by design are run by `ctest --preset long`.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh

need_packages "${packages_build[@]}" "${packages_gui[@]}" "${packages_test[@]}"
fetch_imgui
say "configuring build/dev"
cmake --preset dev -D SHARDWISE_BENCHMARKS=OFF "$@"
say "building with $(nproc) cores"
cmake --build --preset dev --parallel "$(nproc)"
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
exit "$status"
