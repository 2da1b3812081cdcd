#!/usr/bin/env bash
# Builds a folder to copy to a cluster: shardwise, shardwise-run and the library of GPUs, with every
# library but the C library and NVIDIA's linked in, the catalogue, and what checks a GPU there.
# Installs what is missing. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/packages.sh

usage() {
  cat <<'TEXT'
Usage: scripts/cluster.sh [FOLDER]

Builds the preset cluster and fills FOLDER [build/cluster/shardwise] with bin, lib and share, and
with gpu_check/, which checks a GPU there: FOLDER/gpu_check/scripts/gpu_check.sh OUT --binaries FOLDER/bin

Without CUDA's nvcc the programs run on CPUs alone.
Exit codes: 0 done, 1 a program still needs a shared library, 2 bad use, 3 the build failed
TEXT
}
case ${1-} in
  -h | --help) usage && exit 0 ;;
  -*) echo "cluster.sh: unknown flag $1: see --help" >&2 && exit 2 ;;
esac
[ $# -le 1 ] || { echo "cluster.sh: one folder, not $*" >&2 && exit 2; }
folder=${1-build/cluster/shardwise}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
if [ -e "$folder" ] && [ ! -d "$folder" ]; then
  echo "cluster.sh: $folder is no folder" >&2 && exit 2
fi
if [ -d "$folder" ] && [ -n "$(ls -A "$folder")" ] && [ ! -e "$folder/.made_by_cluster_sh" ]; then
  echo "cluster.sh: $folder has other files: name a new or empty folder" >&2 && exit 2
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
need_build_folder build/cluster 2
configure cluster -D SHARDWISE_CUDA=$cuda
say "building ${programs[*]} with $(nproc) cores"
cmake --build build/cluster --parallel "$(nproc)" --target "${programs[@]}" || exit 3
# Filled beside it, so that what was there stays where something fails.
made=$folder
folder=$made.part
rm -rf "$folder"
mkdir -p "$folder"
touch "$folder/.made_by_cluster_sh"
cmake --install build/cluster --prefix "$folder" >/dev/null
if [ $cuda = on ]; then
  for program in "${on_gpus[@]}"; do cp "build/cluster/bin/$program" "$folder/bin/"; done
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
say "$folder: $(du -shL "$folder" | cut -f1), of which programs $(du -shL "$folder/bin" | cut -f1); needs glibc $newest or later"
