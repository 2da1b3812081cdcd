#!/usr/bin/env bash
# A picture of README.md, drawn again by the script that drew it, shows the same.
# picture_test.sh PRESET SCRATCH; 77 where the fonts of the pictures are not installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
preset=$1
scratch=$2
for font in Inter-Regular.otf JetBrainsMono-Regular.ttf; do
  [ -n "$(find /usr/share/fonts -name "$font" -print -quit)" ] || { echo "skipped: no $font"; exit 77; }
done
rm -rf "$scratch"
SHARDWISE_PRESET=$preset PICTURES=explore scripts/pictures.sh "$scratch"
"build/$preset/bin/same_picture" "$scratch/explore.png" docs/pictures/explore.png || {
  echo "docs/pictures is of another version: run scripts/pictures.sh and look at what changed"
  exit 1
}
