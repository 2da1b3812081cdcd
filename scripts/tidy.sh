#!/usr/bin/env bash
# clang-tidy over sources, with a cache by content: what was clean is not asked again.
#   scripts/tidy.sh                sources that differ from origin's main, or of the last commit
#   scripts/tidy.sh --since REV    sources that differ from REV, and those that were not committed
#   scripts/tidy.sh --all          every source that preset tidy compiles
#   scripts/tidy.sh FILE…          these
# A source stands for the headers it includes. Exit codes: 0 all clean, 1 findings, 2 bad use,
# 3 something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh

use() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }
chosen=()
case "${1:-}" in
  -h | --help) use; exit 0 ;;
  --all) chosen=(--all) ;;
  --since)
    [ $# -eq 2 ] || { echo "scripts/tidy.sh: --since takes a revision of git" >&2; exit 2; }
    git rev-parse --quiet --verify "$2^{commit}" >/dev/null ||
      { echo "scripts/tidy.sh: --since $2: no such revision of git" >&2; exit 2; }
    chosen=(--since "$2") ;;
  -*) echo "scripts/tidy.sh: unknown flag $1; --help lists them" >&2; exit 2 ;;
  "") base=$(git rev-parse --quiet --verify origin/main || true)
    [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ] || base=HEAD~1
    chosen=(--since "$base") ;;
  *) chosen=("$@") ;;
esac
need_packages "${packages_build[@]}" "${packages_gui[@]}" "${packages_test[@]}" "${packages_check[@]}" python3
need_build_folder build/tidy 3
fetch_imgui
cmake --preset tidy >build/tidy.log 2>&1 || { cat build/tidy.log >&2; exit 3; }
exec python3 scripts/tidy_sources.py "${chosen[@]}"
