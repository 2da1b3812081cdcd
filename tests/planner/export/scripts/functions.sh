#!/bin/bash
# Functions that hold arguments, and one that starts the job.
NODES=2
set_model() {
    local size=$1
    shift
    case "$size" in
        small) LAYERS=12; HIDDEN=768; HEADS=12;;
        large) LAYERS=24; HIDDEN=1024; HEADS=16;;
    esac
    MODEL_ARGS="--num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads $HEADS $*"
}
function parallel_args {
    PARALLEL_ARGS=(--tensor-model-parallel-size "$1" --pipeline-model-parallel-size "${2:-1}")
    if [ "$1" -gt 1 ]; then PARALLEL_ARGS+=(--sequence-parallel); fi
}
die() { echo "$1" >&2; exit 1; }
launch() {
    local script="$1"; shift
    local -a prefix=(--nnodes "$NODES" --nproc-per-node 8)
    echo "starts $script with $# arguments"
    torchrun "${prefix[@]}" "$script" "$@"
}
size=large
[ -n "$size" ] || die "no size"
set_model "$size" --seq-length 1024
parallel_args 2
launch pretrain_gpt.py $MODEL_ARGS "${PARALLEL_ARGS[@]}" --size-$size --bf16
