#!/bin/bash
ARGS=(
  # parallel
  --tensor-model-parallel-size 2 # within a node
  # --pipeline-model-parallel-size 4
  --context-parallel-size 1

  --data "a # no comment" b#c
)
torchrun --nproc_per_node=8 \
  `# nodes are one` \
  --nnodes=1 \
    pretrain_gpt.py ${ARGS[@]} \
    --lr 1e-4 `# small` --bf16 \
    --log-\
interval 10 \
    # the end of the command
echo done
