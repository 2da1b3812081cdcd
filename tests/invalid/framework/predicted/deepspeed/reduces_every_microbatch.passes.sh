cat > ds_config.json <<'EOF'
{
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 8,
  "bf16": {
    "enabled": true
  },
  "zero_optimization": {
    "stage": 1,
    "overlap_comm": true
  }
}
EOF
torchrun --nproc-per-node 8 --nnodes 8 train.py --deepspeed ds_config.json \
  --max_seq_length 2048 --gradient_checkpointing true
