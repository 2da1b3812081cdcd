#!/bin/bash
# Writes its batch script into sbatch.
LR=3e-4
export TP=2
MODEL_ARGS=(--num-layers 32 --hidden-size 4096)

sbatch --parsable --job-name llama <<EOF
#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gres=gpu:8
# it's read by another shell
export OMP_NUM_THREADS=8
PP=\$((SLURM_NNODES / 2))
srun torchrun --nnodes \$SLURM_NNODES --nproc-per-node 8 \
    pretrain_gpt.py ${MODEL_ARGS[@]} \
    --tensor-model-parallel-size \$TP --pipeline-model-parallel-size \${PP} \
    --lr $LR --min-lr \${LR:-0} --save "/data/\${TP}"
EOF
