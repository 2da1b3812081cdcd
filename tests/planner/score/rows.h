#pragma once

#include <string>
#include <vector>

#include "planner/score/rows/row.h"

namespace shardwise::test {

/// A row as a source might have written it: a small Llama on 8 H100 with FSDP2.
inline Row llama_row() {
  Row row;
  row.id = "test/llama";
  row.framework = "torchtitan (FSDP2)";
  row.task = "pretrain";
  row.model.name = "small llama";
  row.model.arch = "dense";
  row.model.layers = 4;
  row.model.hidden = 1024;
  row.model.ffn = 2816;
  row.model.heads = 8;
  row.model.kv_heads = 2;
  row.model.head_dim = 128;
  row.model.vocab = 32000;
  row.model.seq = 4096;
  row.model.tied_embeddings = false;
  row.model.gated_mlp = true;
  row.model.bias = false;
  row.model.norm = "rmsnorm";
  row.model.pos_emb = "rope";
  row.hardware.gpu = "H100-80GB-SXM";
  row.hardware.gpus = 8;
  row.hardware.gpus_per_node = 8;
  row.parallel.dp = 8;
  row.parallel.tp = 1;
  row.parallel.pp = 1;
  row.parallel.cp = 1;
  row.parallel.ep = 1;
  row.parallel.zero_stage = 3;
  row.parallel.strategy = "FSDP2 full shard";
  row.batch.micro = 2;
  row.batch.global = 16;
  row.precision = "bf16 mixed";
  row.optimizer = "AdamW";
  row.recompute = "none";
  row.quality = "A";
  return row;
}

/// Row under Megatron's distributed optimizer with tp 2, pp 2.
inline Row megatron_row() {
  Row row = llama_row();
  row.id = "test/megatron";
  row.framework = "Megatron-LM";
  row.parallel.dp = 2;
  row.parallel.tp = 2;
  row.parallel.pp = 2;
  row.parallel.zero_stage = 1;
  row.parallel.strategy = "distributed optimizer";
  return row;
}

inline void set_flag(Row& row, const std::string& key, bool on) {
  JsonValue value;
  value.kind = JsonValue::Kind::boolean;
  value.boolean = on;
  row.flags.push_back({key, value});
}

inline void set_flag(Row& row, const std::string& key, const char* text) {
  JsonValue value;
  value.kind = JsonValue::Kind::string;
  value.string = text;
  row.flags.push_back({key, value});
}

inline void set_flag(Row& row, const std::string& key, std::int64_t number) {
  JsonValue value;
  value.kind = JsonValue::Kind::integer;
  value.integer = number;
  value.number = static_cast<double>(number);
  row.flags.push_back({key, value});
}

}  // namespace shardwise::test
