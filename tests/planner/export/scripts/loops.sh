#!/bin/bash
for i in 1 2 3; do
  echo "waits $i"
done
while false; do sleep 1; done
if [ ! -d /no/such/folder ]; then
  echo "no data"
fi
COUNT=$(python -c "print(2 * 4)")
{
  echo start
  torchrun --nproc_per_node 8 pretrain_gpt.py --bf16 --train-iters 5
} 2>&1 | cat
trap 'echo bye' EXIT
wait
