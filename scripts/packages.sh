# Sourced by the other scripts: the Debian packages each of them needs, and how they are installed.

packages_build=(g++ cmake ninja-build ccache libfmt-dev nlohmann-json3-dev libcli11-dev libeigen3-dev
  libopenblas-dev libdnnl-dev libopenmpi-dev openmpi-bin zlib1g-dev libpcre2-dev libutf8proc-dev
  libyaml-cpp-dev)
# The viewer: a window, text, its fonts.
packages_gui=(python3-pip libglfw3-dev libfreetype-dev libgl1 fonts-inter fonts-jetbrains-mono)
packages_test=(libgtest-dev libgmock-dev libbenchmark-dev)
packages_check=(xvfb xauth xdotool libgl1-mesa-dri git clang libclang-rt-dev clang-format-14 clang-tidy-19)

say() { printf '\033[1m==\033[0m %s\n' "$*"; }
[ -t 1 ] || say() { printf '== %s\n' "$*"; }

# stop TEXT…: one line that says what is wrong and what to do, and exit code 3.
stop() {
  echo "${0##*/}: $*" >&2
  exit 3
}

# need_packages PACKAGE…: installs those that are missing, or says how to.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: please have these packages' counterparts installed: $*"
    return
  fi
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "all $# packages are here"
    return
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || stop "packages are missing; as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]} with apt-get"
  local lists
  lists=$("${as_root[@]}" apt-get -qq update 2>&1) ||
    stop "apt-get update failed ($(last_line "$lists")): see to the network or the mirror, and run this again"
  lists=$("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install --no-install-recommends -y "${missing[@]}" 2>&1) ||
    stop "apt-get install failed ($(last_line "$lists")): see to it, and run this again"
}

last_line() { sed '/^$/d' <<<"$1" | tail -n 1; }

# need_build_folder FOLDER GIB: a folder that a build may fill: it can be written, the disk has room for
# what is not there yet, and what is there was made from this checkout with a compiler that is still here.
need_build_folder() {
  local folder=$1 gib=$2 cache=$1/CMakeCache.txt tool free source compiler
  for tool in cmake ninja; do
    command -v "$tool" >/dev/null || stop "no $tool on this machine: install it"
  done
  [ -n "${CXX-}" ] || command -v c++ >/dev/null || command -v g++ >/dev/null ||
    stop "no C++ compiler on this machine: install g++ 12 or newer, or set CXX"
  if ! mkdir -p "$folder" 2>/dev/null || [ ! -w "$folder" ]; then
    stop "$PWD/$folder cannot be written: use a checkout on a disk where you may write"
  fi
  if [ ! -e "$folder/bin" ]; then
    free=$(df --output=avail -k "$folder" | tail -n 1)
    [ "$free" -ge $((gib * 1024 * 1024)) ] ||
      stop "$((free / 1024)) MiB are free for $PWD/$folder, which takes up to $gib GiB: make room, or use another disk"
  fi
  [ -f "$cache" ] || return 0
  source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
  compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$cache")
  [ -z "$source" ] || [ "$source" -ef . ] ||
    stop "$folder was made from $source, not from this checkout: remove it (rm -r $folder)"
  [ -z "$compiler" ] || command -v "$compiler" >/dev/null ||
    stop "$folder was made with $compiler, which is not here any more: remove it (rm -r $folder)"
  [ -z "$compiler" ] || [ -z "${CXX-}" ] || [ "$(command -v "$compiler")" -ef "$(command -v "$CXX")" ] ||
    stop "$folder was made with $compiler, and CXX is $CXX: remove it (rm -r $folder) or unset CXX"
}

# configure PRESET OPTION…
configure() {
  say "configuring build/$1"
  cmake --preset "$@" || stop "build/$1 could not be configured: see the lines above"
}

# build PRESET ARGUMENT…: with all cores. A full disk is named as what it is.
build() {
  local preset=$1 free
  shift
  cmake --build --preset "$preset" --parallel "$(nproc)" "$@" && return
  free=$(df --output=avail -k "build/$preset" | tail -n 1)
  [ "$free" -ge 65536 ] || stop "the disk of $PWD/build is full: make room, and run this again"
  exit 1
}

# fetch_imgui: the viewer's sources, where pip and a network have them. Without, all else is built.
fetch_imgui() {
  scripts/imgui.sh || say "shardwise-view is not built"
}
