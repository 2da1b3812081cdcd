# Sourced by the other scripts: the Debian packages each of them needs, and how they are installed.

packages_build=(g++ cmake ninja-build ccache libfmt-dev nlohmann-json3-dev libcli11-dev libeigen3-dev
  libopenblas-dev libopenmpi-dev openmpi-bin zlib1g-dev libpcre2-dev libutf8proc-dev libyaml-cpp-dev)
# The viewer: a window, text, its fonts.
packages_gui=(python3-pip libglfw3-dev libfreetype-dev libgl1 fonts-inter fonts-jetbrains-mono)
packages_test=(libgtest-dev libgmock-dev libbenchmark-dev)
packages_check=(xvfb xauth xdotool libgl1-mesa-dri git clang libclang-rt-dev clang-format-14 clang-tidy-19)

say() { printf '\033[1m==\033[0m %s\n' "$*"; }
[ -t 1 ] || say() { printf '== %s\n' "$*"; }

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
    if ! command -v sudo >/dev/null; then
      echo "these packages are missing, and installing them needs root:" >&2
      echo "    apt-get install ${missing[*]}" >&2
      exit 3
    fi
    as_root=(sudo)
  fi
  say "installing ${missing[*]} with apt-get"
  "${as_root[@]}" apt-get -qq update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install --no-install-recommends -y "${missing[@]}" >/dev/null
}

# fetch_imgui: the viewer's sources, where pip and a network have them. Without, all else is built.
fetch_imgui() {
  scripts/imgui.sh || say "shardwise-view is not built"
}
