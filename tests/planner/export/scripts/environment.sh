#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1 NCCL_SOCKET_IFNAME=eth0; export OMP_NUM_THREADS=4
export PYTHONPATH="/code/Megatron-LM:${PYTHONPATH:-}"
unset NCCL_DEBUG
ulimit -c unlimited
cd /tmp && NVTE_FLASH_ATTN=1 NVTE_FUSED_ATTN=0 torchrun --nproc_per_node 8 pretrain_gpt.py \
  --bf16 --use-flash-attn --seq-length 4096 --lr ${LR-1e-4} --wd ${WD=0.1} --wd-again $WD || exit 1
