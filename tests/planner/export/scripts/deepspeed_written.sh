#!/usr/bin/env bash
ZERO_STAGE=3
MICRO=2
OUTPUT="./out/zero${ZERO_STAGE}"
mkdir -p $OUTPUT
DS_CONFIG=$OUTPUT/ds_config.json
cat <<EOT > $DS_CONFIG
{
  "train_micro_batch_size_per_gpu": $MICRO,
  "gradient_accumulation_steps": $((16 / MICRO)),
  "zero_optimization": {
    "stage": ${ZERO_STAGE}
  },
  "bf16": {"enabled": true}
}
EOT
cat > hostfile <<-'EOT'
	worker-1 slots=8
	worker-2 slots=8
	EOT
deepspeed --hostfile hostfile --include 'worker-1:0,1,2,3@worker-2:0,1,2,3' \
   --master_port=12346 main.py \
   --data_path Dahoas/rm-static \
   --data_split 2,4,4 \
   --model_name_or_path ${MODEL:-facebook/opt-1.3b} \
   --per_device_train_batch_size ${MICRO} \
   --zero_stage $ZERO_STAGE \
   --deepspeed --deepspeed_config=$DS_CONFIG \
   --output_dir $OUTPUT &> $OUTPUT/training.log
