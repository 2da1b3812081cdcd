#!/bin/bash
# Writes a batch script, then sends it.
set -e
cat > job.sh <<'EOF'
#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
srun python -u pretrain_gpt.py --micro-batch-size $1 --seq-length "$2" --exit-interval $#
EOF
chmod +x job.sh
sbatch -J train job.sh 2 4096
