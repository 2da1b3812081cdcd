#include "planner/spec/plan/plan_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/plan/names.h"

namespace shardwise {
namespace {

template <class T>
std::string text_of(const T& value) {
  JsonWriter json;
  json.begin_object();
  write_fields(json, value);
  json.end_object();
  return json.text();
}

/// The value that `text` describes, and the problems it has.
template <class T>
std::pair<T, Diagnostics> value_of(const std::string& text) {
  const Result<JsonValue> json = parse_json(text, "x.json");
  if (!json) return {{}, json.problems()};
  Diagnostics problems;
  ObjectReader reader(*json, "x.json", "", problems);
  T value;
  read_fields(reader, value);
  return {value, problems};
}

Layout unusual_layout() {
  Layout layout;
  for (const auto& [key, text] : std::vector<std::pair<std::string, std::string>>{
           {"tp", "2"},
           {"cp", "3"},
           {"pp", "4"},
           {"vpp", "5"},
           {"first_stage_layers", "6"},
           {"last_stage_layers", "7"},
           {"ep", "8"},
           {"etp", "9"},
           {"dp_shard", "10"},
           {"dp_replicate", "11"},
           {"micro_batch_size", "12"},
           {"zero_stage", "3"},
           {"sequence_parallel", "true"},
           {"outer_shards_optimizer", "true"},
           {"reshard_after_forward", "false"},
           {"reduce_every_microbatch", "false"},
           {"offload_optimizer", "true"},
           {"store_param_remainders", "true"},
           {"offload_activations", "true"},
           {"double_buffer", "true"},
           {"fp32_gradients", "false"},
           {"overlap_grad_reduce", "false"},
           {"overlap_param_gather", "false"},
           {"ddp_bucket_size", "10000000"},
           {"ddp_pad_buckets_for_high_nccl_busbw", "true"},
           {"recompute", "full"},
           {"recompute_interval", "2"},
           {"schedule", "zb_v"},
           {"cp_kind", "ulysses"},
           {"order", "pp-tp-cp-ep-dp_replicate-dp_shard"}}) {
    EXPECT_EQ(set_field(layout, key, text), "");
  }
  return layout;
}

TEST(LayoutFields, SurviveJson) {
  const Layout layout = unusual_layout();
  const auto [read, problems] = value_of<Layout>(text_of(layout));
  EXPECT_TRUE(problems.empty()) << to_string(problems);
  EXPECT_EQ(read, layout);
  EXPECT_EQ(text_of(read), text_of(layout));
}

TEST(LayoutFields, HaveASwitchOrANumberOfRanksForResharding) {
  for (const char* value : {"true", "false", "8"}) {
    const auto [layout, problems] =
        value_of<Layout>(std::string("{\"reshard_after_forward\": ") + value + "}");
    EXPECT_TRUE(problems.empty()) << to_string(problems);
    EXPECT_EQ(field_text(layout, "reshard_after_forward"), value);
    EXPECT_EQ(value_of<Layout>(text_of(layout)).first, layout);
  }
  for (const char* value : {"1", "0", "\"yes\"", "2.5"}) {
    const auto [layout, problems] =
        value_of<Layout>(std::string("{\"reshard_after_forward\": ") + value + "}");
    EXPECT_EQ(problems.size(), 1U) << value;
    EXPECT_EQ(layout, Layout{});
  }
}

TEST(LayoutFields, AreSetAndReadByName) {
  const Layout layout = unusual_layout();
  Layout copy;
  for (const std::string& key : layout_keys()) {
    EXPECT_NE(field_text(layout, key), field_text(copy, key)) << key << " was not set";
    EXPECT_EQ(set_field(copy, key, field_text(layout, key)), "") << key;
  }
  EXPECT_EQ(copy, layout);
  EXPECT_EQ(layout_keys().size(), 30U);
}

TEST(LayoutFields, RefuseWhatTheUserTypedWithTheReason) {
  Layout layout;
  EXPECT_EQ(set_field(layout, "tpp", "8"), "tpp is not a field of a layout (did you mean tp?)");
  EXPECT_EQ(set_field(layout, "tp", "eight"), "tp: eight is not an integer from 1 to 4194304");
  EXPECT_EQ(set_field(layout, "tp", "0"), "tp: 0 is not an integer from 1 to 4194304");
  EXPECT_EQ(set_field(layout, "tp", "8x"), "tp: 8x is not an integer from 1 to 4194304");
  EXPECT_EQ(set_field(layout, "tp", ""), "tp: \"\" is not an integer from 1 to 4194304");
  EXPECT_EQ(set_field(layout, "sequence_parallel", "yes"),
            "sequence_parallel: yes is not true or false");
  EXPECT_EQ(set_field(layout, "reshard_after_forward", "1"),
            "reshard_after_forward: 1 is not true, false or an integer from 2 to 4194304");
  EXPECT_EQ(set_field(layout, "recompute", "some"),
            "recompute: some is not one of none, selective, full");
  EXPECT_EQ(set_field(layout, "order", "tp-pp"),
            "order: tp-pp does not name each axis once "
            "(order tp, cp, ep, dp_shard, dp_replicate, pp, fastest-varying first)");
  EXPECT_EQ(layout, Layout{});
}

TEST(LayoutFields, ReportUnknownKeysAndBadValuesTogether) {
  const auto [layout, problems] =
      value_of<Layout>("{\"tp\": 0,\n\"zero_stge\": 1,\n\"order\": [\"tp\", \"tp\"]}");
  EXPECT_EQ(to_string(problems),
            "x.json:1:8: /tp: 0 is too small\n"
            "    use 1 to 4194304\n"
            "x.json:2:14: /zero_stge: unknown field\n"
            "    did you mean zero_stage?\n"
            "x.json:3:10: /order: does not name each axis once\n"
            "    order tp, cp, ep, dp_shard, dp_replicate, pp, fastest-varying first\n"
            "3 problems, nothing was run\n");
}

TEST(JobFields, SurviveJson) {
  JobSpec job;
  job.sequence_length = 8192;
  job.global_batch_size = 512;
  job.precision = DType::fp8;
  job.fp8_parameter_gather = true;
  job.fp8_recipe = Fp8Recipe::rowwise;
  job.optimizer = Optimizer::sgd_momentum;
  job.main_dtype = DType::bf16;
  job.moment_dtype = DType::bf16;
  job.fused_gradient_accumulation = false;
  job.attention = AttentionKernel::materialised;
  job.loss = LossKernel::chunked;
  job.loss_chunk_rows = 2048;
  job.kernels = Kernels::compiled;
  job.tp_overlap = TpOverlap::pipelined;
  job.expert_dispatch = ExpertDispatch::deduplicated;
  job.expert_overlap = true;
  job.grouped_gemm = false;
  job.cuda_graphs = true;
  job.deterministic = true;
  job.attention_mask_in_batch = true;
  job.dropout = 0.1;
  job.frozen_base = true;
  job.recompute_operations = {"mlp.activation", "attention_norm"};
  job.recompute_stops_early = false;
  job.saved_linear_inputs = SavedFormat::fp8;
  job.saved_activation_inputs = SavedFormat::e5m6;
  job.saved_attention_outputs = SavedFormat::fp8;
  job.held_back = 0.07;
  job.expert_imbalance = 1.25;
  job.expert_skew = 0.5;
  job.tokens_total = 15'000'000'000'000;
  job.bytes_per_token_input = 2.5;
  const auto [read, problems] = value_of<JobSpec>(text_of(job));
  EXPECT_TRUE(problems.empty()) << to_string(problems);
  EXPECT_EQ(read, job);
}

TEST(RuntimeFields, SurviveJson) {
  const RuntimeMemory runtime = {1, 2, 3, 4, true, -5, 0.25, 1.5, 0.125, 2, 6, 0.5, 0.375};
  const auto [read, problems] = value_of<RuntimeMemory>(text_of(runtime));
  EXPECT_TRUE(problems.empty()) << to_string(problems);
  EXPECT_EQ(read, runtime);
}

TEST(ModelFields, RefuseIndicesAndSizesThatDoNotFit) {
  const auto [model, problems] = value_of<ModelSpec>(R"({
    "name": "x", "layers": [0, 1],
    "kinds": [{"name": "block", "role": "block", "parameters": [
      {"name": "w", "shape": [4, 0]}, {"name": "v", "shape": [4], "tp_dim": 1},
      {"name": "u", "shape": [1000000000, 1000000000]}]}]
  })");
  EXPECT_EQ(to_string(problems),
            "x.json:4:30: /kinds/0/parameters/0/shape: holds something that is not an integer of "
            "1 to 1099511627776\n"
            "x.json:4:77: /kinds/0/parameters/1/tp_dim: 1 is not a dimension of a shape with 1\n"
            "x.json:5:30: /kinds/0/parameters/2/shape: 1e+18 elements\n"
            "3 problems, nothing was run\n");
}

TEST(ModelFields, RefuseLayersWithoutAKind) {
  const auto [model, problems] = value_of<ModelSpec>(
      R"({"name": "x", "layers": [0, 7], "kinds": [{"name": "block", "role": "block"}]})");
  EXPECT_EQ(to_string(problems),
            "x.json:1:25: /layers: 7 is not an index into kinds\n"
            "    use 0 to 0\n"
            "1 problem, nothing was run\n");
}

}  // namespace
}  // namespace shardwise
