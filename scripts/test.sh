#!/usr/bin/env bash
# Builds Shardwise in build/dev and runs every test: scripts/test.sh [CMAKE-OPTION…]. Installs what is
# missing. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh

need_packages "${packages_build[@]}" "${packages_gui[@]}" "${packages_test[@]}"
fetch_imgui
say "configuring build/dev"
cmake --preset dev "$@"
say "building with $(nproc) cores"
cmake --build --preset dev --parallel "$(nproc)"
say "testing"
ctest --preset dev --parallel "$(nproc)"
