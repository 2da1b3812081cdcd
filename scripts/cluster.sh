#!/usr/bin/env bash
# Builds a folder to copy to a cluster: shardwise, shardwise-run and the library of GPUs, with every
# library but the C library and NVIDIA's linked in, the catalogue, and what checks a GPU there.
# Installs what is missing. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh

usage() {
  cat <<'TEXT'
Usage: scripts/cluster.sh [FOLDER] [--architectures LIST] [--pack]

Builds the preset cluster and fills FOLDER [build/cluster/shardwise] with bin, lib and share, and
with gpu_check/, which checks a GPU there: FOLDER/gpu_check/scripts/gpu_check.sh OUT --binaries FOLDER/bin

  --architectures LIST  GPUs to compile for, as CMake names them: "90-real" for an H100 alone
                        [80-real;90-real;100-real;120]
  --pack                Also FOLDER.tar.xz, for a machine that little can be carried to: at most 40 MiB

Without CUDA's nvcc the programs run on CPUs alone.
Exit codes: 0 done, 1 a program still needs a shared library, or the pack is too large, 2 bad use,
3 the build failed
TEXT
}
bad_use() {
  echo "cluster.sh: $1" >&2
  exit 2
}
folder='' architectures='' pack=off
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --pack) pack=on ;;
    --architectures)
      [ $# -ge 2 ] || bad_use "--architectures takes a value, such as 90-real"
      architectures=$2
      [[ $architectures =~ ^[0-9]{2,3}[af]?(-real|-virtual)?(\;[0-9]{2,3}[af]?(-real|-virtual)?)*$ ]] ||
        bad_use "--architectures $architectures: not as 90-real or 80-real;90-real"
      shift
      ;;
    -*) bad_use "unknown flag $1: see --help" ;;
    *)
      [ -z "$folder" ] || bad_use "one folder, not $folder and $1"
      folder=$1
      ;;
  esac
  shift
done
folder=${folder:-build/cluster/shardwise}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
if [ -e "$folder" ] && [ ! -d "$folder" ]; then
  bad_use "$folder is no folder"
fi
if [ -d "$folder" ] && [ -n "$(ls -A "$folder")" ] && [ ! -e "$folder/.made_by_cluster_sh" ]; then
  bad_use "$folder has other files: name a new or empty folder"
fi

need_packages "${packages_build[@]}" "${packages_test[@]}"
programs=(shardwise shardwise-run)
on_gpus=(gpu_kernels_test gpu_compute_test gpu_ceilings)
cuda=on
if ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ] && [ ! -x "${CUDA_HOME-}/bin/nvcc" ]; then
  cuda=off
  say "no nvcc here: for CPUs alone"
fi
[ $cuda = off ] || programs+=(shardwise_cuda "${on_gpus[@]}")
[ $cuda = on ] || [ -z "$architectures" ] || bad_use "--architectures $architectures: no nvcc here to compile with"
need_build_folder build/cluster 2
options=(-D "SHARDWISE_CUDA=$cuda")
# What an earlier call was given is not this one's.
options+=(${architectures:+-D "SHARDWISE_CUDA_ARCHITECTURES=$architectures"})
[ -n "$architectures" ] || options+=(-U SHARDWISE_CUDA_ARCHITECTURES)
configure cluster "${options[@]}"
say "building ${programs[*]} with $(nproc) cores"
cmake --build build/cluster --parallel "$(nproc)" --target "${programs[@]}" || exit 3
# Filled beside it, so that what was there stays where something fails.
made=$folder
folder=$made.part
rm -rf "$folder"
mkdir -p "$folder"
touch "$folder/.made_by_cluster_sh"
cmake --install build/cluster --prefix "$folder" --strip >/dev/null
if [ $cuda = on ]; then
  for program in "${on_gpus[@]}"; do
    cp "build/cluster/bin/$program" "$folder/bin/"
    strip "$folder/bin/$program"
  done
  # The library beside its program, where the checks look for both.
  mv "$folder/lib/libshardwise_cuda.so" "$folder/bin/"
  rmdir --ignore-fail-on-non-empty "$folder/lib"
  mkdir -p "$folder/gpu_check/tests"
  cp -r --parents scripts/gpu_check.sh scripts/gpu_check tests/bench/*.py configs README.md "$folder/gpu_check/"
  git rev-parse HEAD >"$folder/gpu_check/COMMIT" 2>/dev/null || rm -f "$folder/gpu_check/COMMIT"
fi

say "checking that nothing but the C library is needed"
broken=0 newest=0
for file in "$folder"/bin/*; do
  while read -r library; do
    case $library in
      libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux-*) ;;
      *)
        echo "${file##*/} needs $library"
        broken=1
        ;;
    esac
  done < <(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }')
  version=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9]+\.[0-9]+' | sort -V | tail -1)
  newest=$(printf '%s\n%s\n' "$newest" "${version#GLIBC_}" | sort -V | tail -1)
done
"$folder/bin/shardwise" --version
"$folder/bin/shardwise-run" --version
if [ $cuda = on ]; then
  # What a library takes from its program shows only when it is opened.
  plan=build/cluster/opens_its_library.json
  "$folder/bin/shardwise" plan --model gpt2 --cluster dgx-h100 --gpus 1 --engine shardwise --loss chunked \
    --global-batch-size 1 -o "$plan" >/dev/null
  said=$("$folder/bin/shardwise-run" train "$plan" --device cuda --steps 1 2>&1) || true
  case $said in
    *"cannot open"* | *"undefined symbol"* | *"there is no lib"*)
      echo "$said"
      broken=1
      ;;
  esac
fi
[ $broken -eq 0 ] || exit 1
rm -rf "$made"
mv "$folder" "$made"
folder=$made
if [ $pack = on ]; then
  # Programs that have OpenBLAS and kernels in common lie in one window of the compressor.
  say "packing"
  tar -c --sort=name --owner=0 --group=0 --numeric-owner -C "$(dirname "$folder")" "$(basename "$folder")" |
    xz -T1 --lzma2=preset=9,dict=192MiB >"$folder.tar.xz.part"
  bytes=$(stat -c %s "$folder.tar.xz.part")
  if [ "$bytes" -gt $((40 << 20)) ]; then
    rm -f "$folder.tar.xz.part"
    echo "cluster.sh: the pack has $((bytes >> 20)) MiB, and 40 may travel: --architectures with fewer GPUs" >&2
    exit 1
  fi
  mv "$folder.tar.xz.part" "$folder.tar.xz"
  say "$folder.tar.xz: $(awk -v bytes="$bytes" 'BEGIN { printf "%.1f", bytes / 1048576 }') MiB"
fi
say "$folder: $(du -shL "$folder" | cut -f1), of which programs $(du -shL "$folder/bin" | cut -f1); needs glibc $newest or later"
