#!/bin/bash
LAUNCH="torchrun --nproc_per_node 8"
ARGUMENTS='--bf16 --note "two words" --path $ROOT/x'
ROOT=/data
eval "$LAUNCH train.py $ARGUMENTS" --last
