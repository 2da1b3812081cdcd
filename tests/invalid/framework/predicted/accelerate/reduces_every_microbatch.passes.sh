cat > accelerate.yaml <<'EOF'
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 8
num_processes: 64
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_activation_checkpointing: true
  fsdp_reshard_after_forward: true
EOF
accelerate launch --config_file accelerate.yaml train.py --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 8 --max_seq_length 2048
