#!/bin/bash
#SBATCH --job-name=gpt-175b
#SBATCH --nodes=16
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
set -euo pipefail

export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_IB_SL=1 NCCL_DEBUG="WARN"
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((6000 + 123))
GPUS_PER_NODE=8
TP=8 PP=12
MBS=1
GBS=$((MBS * 1536))
NAME="gpt3_tp${TP}_pp${PP}"
CKPT=/checkpoints/${NAME}

DISTRIBUTED=(
    --nproc_per_node "$GPUS_PER_NODE"
    --nnodes 16
    --rdzv_backend c10d
    --rdzv_endpoint "localhost:$MASTER_PORT"
)
MODEL=(
    --num-layers 96   # deep
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
)
TRAIN=(--micro-batch-size $MBS --global-batch-size ${GBS} --lr 6.0e-5 --bf16)
if [[ $PP -gt 1 ]]; then
    TRAIN+=(--num-layers-per-virtual-pipeline-stage 1)
fi
[ "$TP" -gt 1 ] && TRAIN+=(--sequence-parallel)

srun --label torchrun "${DISTRIBUTED[@]}" pretrain_gpt.py \
    "${MODEL[@]}" \
    "${TRAIN[@]}" \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
    --save "$CKPT" --load "$CKPT" 2>&1 | tee "log_${NAME}.txt"
