#!/bin/bash
MODEL=(--num-layers 24 --hidden-size 2048)
DATA=(--data-path "0.5 a" 'b c')
EXTRA=()
ALL=("${MODEL[@]}" "${DATA[@]}" "${EXTRA[@]}")
ALL+=("--words-${#ALL[@]}" --last "${ALL[-1]:-none}")
FLAGS=(bf16 use-flash-attn)
HALF=("${ALL[@]:0:4}")
FILE=/data/llama_text.tar.gz
HOST=node-17.cluster.local
torchrun --nproc_per_node 8 pretrain_gpt.py "${ALL[@]:0:8}" ${HALF[*]} "${HALF[*]}" \
  "${FLAGS[@]/#/--}" --stem "${FILE##*/}" --short ${HOST%%.*} --folder ${FILE%/*} \
  --type "${FILE#*.}" --name "${FILE/llama/gpt}" --under "${HOST//./_}" --size ${#HOST} \
  --part ${HOST:5:2} --from "${HOST:8}" --glob "${FILE/%gz/zst}" --count ${#FLAGS[*]} ${EXTRA[@]+"${EXTRA[@]}"}
