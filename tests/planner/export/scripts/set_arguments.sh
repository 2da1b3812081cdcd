#!/bin/sh
set -e
set -- --num-layers 32 --hidden-size 4096
set -- "$@" --num-attention-heads 32 --title "two words"
if [ "$#" -gt 4 ]; then set -- "$@" --count-$#; fi
first=$1
shift 2
: "${MBS:=4}"
python -m torch.distributed.run --nproc_per_node 8 pretrain_gpt.py "$first" 32 "$@" --micro-batch-size $MBS
