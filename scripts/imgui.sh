#!/usr/bin/env bash
# Fetches the sources of Dear ImGui (docking branch) and ImPlot for gui/ into build/imgui, which all
# presets share: scripts/imgui.sh [FOLDER]. Safe to run again: it stops when the folder is complete.
# Source: the source distribution of the Python package imgui-bundle, which pip checks against its
# SHA-256. Nothing of it is compiled or imported by Python. Without pip or a network, give CMake a
# folder of your own: -D SHARDWISE_IMGUI_SOURCE=DIR.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.93.0
sha256=10ad1dab8258a6787b4f07bb926b08d0efc648a7906242568c8dd778c5e719bf
target=${1:-build/imgui}
stamp=$target/VERSION

fail() {
  echo "scripts/imgui.sh: $1" >&2
  echo "    $2" >&2
  exit 3
}

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$version $sha256" ]; then
  echo "$target has ImGui and ImPlot of imgui-bundle $version"
  exit 0
fi
other="or give CMake a tree that has both: -D SHARDWISE_IMGUI_SOURCE=DIR"
python3 -m pip --version >/dev/null 2>&1 || fail "python3 has no pip" "install python3-pip, $other"

mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "imgui-bundle==$version --hash=sha256:$sha256" >"$work/requirements.txt"
echo "downloading imgui-bundle $version (54 MB) with pip"
python3 -m pip download --quiet --no-deps --no-binary=imgui-bundle --require-hashes \
  --requirement "$work/requirements.txt" --dest "$work" >"$work/pip.log" 2>&1 ||
  fail "pip could not download imgui-bundle $version: $(tail -n 1 "$work/pip.log")" \
    "try again with a network, $other"
archive=$(find "$work" -maxdepth 1 -name 'imgui[_-]bundle-*.tar.gz')
# pip takes a file of --find-links with the same checks; this one guards against a pip that does not.
echo "$sha256  $archive" | sha256sum --check --status ||
  fail "$(basename "$archive") has another SHA-256 than $sha256" "remove pip's cache and try again"

imgui=imgui_bundle-$version/external/imgui/imgui
implot=imgui_bundle-$version/external/implot/implot
mkdir "$work/whole"
tar -xzf "$archive" -C "$work/whole" --no-same-owner --wildcards --no-wildcards-match-slash \
  "$imgui/*.h" "$imgui/*.cpp" "$imgui/LICENSE.txt" \
  "$imgui/backends/imgui_impl_glfw.*" "$imgui/backends/imgui_impl_opengl3*" \
  "$imgui/misc/freetype/*" "$implot/*.h" "$implot/*.cpp" "$implot/LICENSE"
rm -f "$work/whole/$imgui/imgui_demo.cpp" "$work/whole/$implot/implot_demo.cpp"
mkdir "$work/kept"
mv "$work/whole/$imgui" "$work/kept/imgui"
mv "$work/whole/$implot" "$work/kept/implot"
echo "$version $sha256" >"$work/kept/VERSION"
rm -rf "$target"
mv -T "$work/kept" "$target"
echo "$target has ImGui and ImPlot of imgui-bundle $version"
