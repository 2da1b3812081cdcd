#!/bin/sh
# Compiles through ccache so that one cache serves every checkout on a machine: cmake/ccache.sh ROOT COMPILER ARGUMENT…
# Paths are hashed relative to ROOT. ccache leaves the argument of -Xclang as it is, so a path below
# the current folder, which is the build folder, is made relative here.
# A precompiled header holds absolute paths. What stands for it in the hash is a checksum of the
# headers that it was made of, in a file beside it.
CCACHE_BASEDIR=$1
shift
export CCACHE_BASEDIR CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
# Without the sloppiness ccache keeps nothing that was made with a precompiled header.
export CCACHE_SLOPPINESS=pch_defines,time_macros

folder=$(pwd)
header= made= previous=
for word; do
  shift
  word=${word#"$folder"/}
  case $word in *.pch) header=$word ;; esac
  set -- "$@" "$word"
  [ "$previous" = -o ] && made=$word
  previous=$word
done
[ -n "$header" ] && [ "$header" = "$made" ] || exec ccache "$@"

# Not from the cache: another checkout's would name files of a folder that may be gone.
"$@" || exit
# "header.pch: one.h two.h \": names of files, a line each.
sed -e 's/^[^:]*: //' -e 's/ *\\$//' "$header.d" | tr ' ' '\n' | sed '/^$/d' | xargs cat | sha256sum |
  cut -d ' ' -f 1 >"$header.sum" || rm -f "$header.sum"
