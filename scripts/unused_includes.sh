#!/usr/bin/env bash
# Includes that nothing uses, by clang-tidy's misc-include-cleaner; no build folder is needed.
#   scripts/unused_includes.sh --since REV   sources that differ from REV, and new ones
#   scripts/unused_includes.sh FILE…         these
# Headers of fmt and CLI11, which pass on what they include, are left out. Exit codes: 0 none, 1 findings,
# 2 bad use, 3 something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

tidy=${CLANG_TIDY:-clang-tidy-19}
case "${1:-}" in
  --since)
    if [ $# -ne 2 ] || ! git rev-parse --quiet --verify "$2^{commit}" >/dev/null; then
      echo "scripts/unused_includes.sh: --since takes a revision of git" >&2
      exit 2
    fi
    mapfile -t sources < <({ git diff --name-only --diff-filter=d "$2" --; git ls-files --others --exclude-standard; } |
      grep -E '\.cc$' || true) ;;
  "" | -*) echo "scripts/unused_includes.sh: name sources, or --since REV" >&2; exit 2 ;;
  *) sources=("$@") ;;
esac
for each in "${sources[@]}"; do
  [ -f "$each" ] || { echo "scripts/unused_includes.sh: $each is not there" >&2; exit 2; }
done
command -v "$tidy" >/dev/null || { echo "scripts/unused_includes.sh: install $tidy" >&2; exit 3; }
[ ${#sources[@]} -gt 0 ] || exit 0

# Its other findings, headers that come through others, are no defect here.
config='{Checks: "-*,misc-include-cleaner", CheckOptions: {misc-include-cleaner.IgnoreHeaders: "fmt/.*;CLI/.*"}}'
found=$(printf '%s\0' "${sources[@]}" |
  xargs -0 -P "$(nproc)" -I{} "$tidy" --quiet --config="$config" {} -- -std=c++20 -I. -w 2>/dev/null |
  grep -F "is not used directly" | sed "s|^$PWD/||" || true)
[ -n "$found" ] || { echo "unused includes: none in ${#sources[@]} sources"; exit 0; }
printf '%s\n' "$found"
exit 1
