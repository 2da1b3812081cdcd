#!/bin/bash
#SBATCH -N 2 --ntasks-per-node 8
NP=16
HOSTS="h1:8,h2:8"
OPTIONS="-np $NP -H $HOSTS -bind-to none -x LD_LIBRARY_PATH"
if (( 1 )); then :; fi
if ! [[ $HOSTS == *h3* ]]; then MORE="--no-save-optim"; else MORE=--other; fi
if [[ $HOSTS == h?:8,* && $NP != 8 ]]; then MORE+=" --distributed-backend nccl"; fi
mpirun $OPTIONS python -u pretrain_gpt.py --bf16 $MORE \
  --train-iters 10 < /dev/null > log.$NP 2> >(tee err >&2)
