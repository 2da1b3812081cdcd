#!/bin/bash
NUM_NODES=4
GPUS=$(( NUM_NODES * 8 ))
CONFIG_DIR=configs
cat <<EOT | sed 's/x/y/' > /dev/null
not a configuration
EOT
cat > "$CONFIG_DIR.yaml" << EOT
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: ${NUM_NODES}
num_processes: ${GPUS}
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
EOT
ARGS=" \
 --model_name_or_path meta-llama/Llama-3.1-8B \
 --per_device_train_batch_size 2 \
 --gradient_accumulation_steps 8 "
export LAUNCHER="accelerate launch \
    --config_file $CONFIG_DIR.yaml \
    --num_processes ${GPUS} --main_process_port 29500 "
export SCRIPT="train.py"
export CMD="$LAUNCHER $SCRIPT $ARGS"
$CMD --learning_rate 2e-5
