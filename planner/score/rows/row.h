#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/json/reader.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

// A published measurement as its collector wrote it down: one JSON object a line. What the source
// does not say is absent. The schema is not ours, so keys without a field here are passed over.
// docs/score.md lists the fields that count.

struct RowMoe {
  std::int64_t experts = 0;
  std::int64_t topk = 0;
  std::int64_t ffn = 0;  // of one routed expert
  std::int64_t shared_ffn = 0;
  std::int64_t first_dense_layers = 0;
  std::int64_t layer_freq = 1;
  std::string dispatcher;  // "alltoall", "allgather"; empty = not stated
};

struct RowMla {
  std::int64_t q_lora_rank = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_head_dim = 0;  // without the rotary part
  std::int64_t qk_rope_dim = 0;
  std::int64_t v_head_dim = 0;
};

struct RowModel {
  std::string name;
  std::string arch;  // "dense", "moe"
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> hidden;
  std::optional<std::int64_t> ffn;
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> kv_heads;
  std::optional<std::int64_t> head_dim;
  std::optional<std::int64_t> vocab;
  std::optional<std::int64_t> seq;
  std::int64_t mtp_layers = 0;
  std::optional<bool> tied_embeddings;
  std::optional<bool> gated_mlp;
  std::optional<bool> bias;
  std::string norm;
  std::string pos_emb;
  std::optional<double> params_exact;
  std::optional<RowMoe> moe;
  std::optional<RowMla> mla;
};

struct RowHardware {
  std::string gpu;
  std::optional<double> gpu_mem_gb;
  std::optional<std::int64_t> gpus;
  std::optional<std::int64_t> gpus_per_node;
  std::string intra_link;
  std::string inter_link;
};

struct RowParallel {
  std::optional<std::int64_t> dp;
  std::optional<std::int64_t> tp;
  std::optional<std::int64_t> pp;
  std::optional<std::int64_t> vpp;
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> ep;
  std::optional<std::int64_t> etp;
  std::optional<bool> sequence_parallel;
  std::string sequence_wording;  // "ulysses 4" where `sp` is not a boolean
  std::optional<std::int64_t> zero_stage;
  std::string strategy;
  std::optional<std::int64_t> hsdp_shard;
  std::optional<std::int64_t> hsdp_replicate;
  std::optional<std::int64_t> optimizer_shard;  // -1: over all data-parallel ranks
  std::string pp_schedule;
};

struct RowBatch {
  std::optional<std::int64_t> micro;
  std::optional<std::int64_t> global;  // sequences
  std::optional<double> grad_accum;
};

struct RowMeasured {
  std::optional<double> step_time_s;
  std::optional<double> tokens_per_s_per_gpu;
  std::optional<double> samples_per_s;  // of the whole job
  bool reports_rate_only = false;       // TFLOP/s, MFU or HFU and nothing above
  std::optional<double> memory_gib;
  std::string memory_kind;
  std::optional<double> reserved_gib;    // memory_other: beside an allocated figure
  std::optional<double> after_step_gib;  // memory_other: allocated when the step is over
  bool oom = false;
};

struct Row {
  std::string file;
  int line = 0;
  std::string id;          // "source/…"
  std::string repository;  // of its source, "pytorch/torchtitan"; empty = not stated
  std::string framework;   // "torchtitan (FSDP2)"
  std::string task;        // "pretrain", "sft", "lora", …
  std::string date;        // "2024-05"; empty = not stated
  RowModel model;
  RowHardware hardware;
  RowParallel parallel;
  RowBatch batch;
  std::string precision;
  std::string optimizer;
  std::string recompute;
  std::vector<JsonMember> flags;  // keys with '-' written as '_'
  RowMeasured measured;
  std::string quality;  // "A" … "C", "X"

  /// Name of the source: the id up to its first '/'.
  std::string_view source() const;
  /// The value of a flag, or nullptr when it is absent or null.
  const JsonValue* flag(std::string_view key) const;
  /// The flag is there and true.
  bool flag_on(std::string_view key) const;
  /// The flag is there and false.
  bool flag_off(std::string_view key) const;
  /// The flag's text, empty when it is no string.
  std::string_view flag_text(std::string_view key) const;
};

/// Reads the rows of one JSON Lines text; blank lines are passed over.
/// \returns the rows in order, or everything wrong with them: wrong types, values out of range,
///          lines that are not JSON, ids given twice, no row at all. The list stops at 100
///          problems.
Result<std::vector<Row>> read_rows(std::string_view text, const std::string& file);

}  // namespace shardwise
