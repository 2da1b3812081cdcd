#!/bin/bash
read -r -d '' FLAGS <<EOF || true
  --micro-batch-size 1 \
  --lr 1e-4
EOF
TEXT="torchrun --nproc-per-node 8 train.py $FLAGS"
cat <<EOF | bash
echo sent
$TEXT --name 'a b'
EOF
