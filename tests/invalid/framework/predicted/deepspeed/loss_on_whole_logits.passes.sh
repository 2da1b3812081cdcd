cat > ds_config.json <<'EOF'
{
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 1,
  "bf16": {
    "enabled": true
  },
  "zero_optimization": {
    "stage": 3
  }
}
EOF
torchrun --nproc-per-node 8 --nnodes 8 train.py --deepspeed ds_config.json \
  --max_seq_length 256 --gradient_checkpointing true
