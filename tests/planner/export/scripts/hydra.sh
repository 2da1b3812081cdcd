#!/bin/bash
set -x
MODEL_SIZE=70b
NODES=32
case $MODEL_SIZE in
  7b|8b)  TP=1; PP=1 ;;
  70b)    TP=4
          PP=4 ;;
  *) echo "unknown"; exit 1 ;;
esac
OVERRIDES="trainer.devices=8 trainer.num_nodes=$NODES trainer.precision=bf16-mixed"
WANDB_PROJECT=
RUN_NAME="llama-${MODEL_SIZE^^}-tp${TP}"
read -r -d '' TEXT <<EOT || true
free text, with 'an apostrophe
EOT
torchrun --nproc-per-node 8 --nnodes ${NODES} megatron_gpt_pretraining.py \
    --config-path=conf --config-name "megatron_${MODEL_SIZE,,}_config" \
    $OVERRIDES \
    model.tensor_model_parallel_size=$TP model.pipeline_model_parallel_size=$PP \
    '+model.rope={theta: 1.0e6, scale: 8}' \
    "model.data.data_prefix=[0.5,/data/a_text_document,0.5,/data/b_text_document]" \
    exp_manager.name=${RUN_NAME} \
    ${WANDB_PROJECT:+exp_manager.wandb_logger_kwargs.project="$WANDB_PROJECT"} \
    model.micro_batch_size=${MBS:-1} model.data.{train,validation}_ds.num_workers=2
