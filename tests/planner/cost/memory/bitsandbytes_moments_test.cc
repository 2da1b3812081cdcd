#include "planner/cost/memory/bitsandbytes_moments.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"

namespace shardwise {
namespace {

/// States of a model that one GPU trains whole under FSDP1.
StageStates states_on_one_gpu(const ModelSpec& model, AdamwKernel adamw,
                              DType moments = DType::fp32) {
  JobSpec job;
  job.adamw = adamw;
  job.moment_dtype = moments;
  const EngineProfile& engine = *find_engine("fsdp1");
  const ClusterSpec cluster = *find_cluster("dgx-a100");
  const Layout layout = {.zero_stage = 0};
  const std::vector<LayerMemory> layers = layer_memories(model, job, engine, layout);
  const MemoryRules rules = memory_rules_on(cluster.gpu, model, job, engine);
  const StageParts parts = stage_parts(model, layers, assign_stages(model, layout).front());
  return stage_states(parts, {&rules, &layout, 0, 1});
}

// tests/golden/optimizer_states.py has what bitsandbytes itself makes of transformers' models.
TEST(BitsandbytesMoments, AreTheBytesOfItsOwnOptimizers) {
  const Result<JsonValue> golden = read_json("tests/golden/optimizer_states.json");
  ASSERT_TRUE(golden.ok());
  for (const JsonValue& row : golden->find("states")->elements) {
    const std::string& name = row.find("model")->string;
    const std::string& kind = row.find("adamw")->string;
    const std::optional<AdamwKernel> adamw = from_name<AdamwKernel>(kind);
    ASSERT_TRUE(adamw.has_value()) << kind;
    const StageStates states = states_on_one_gpu(*load_model(name), *adamw);
    EXPECT_EQ(states.moment_bytes(), row.find("resident_bytes")->integer) << name << " " << kind;
    EXPECT_EQ(states.on_host.bytes(), row.find("paged_bytes")->integer) << name << " " << kind;
  }
}

TEST(TorchaoMoments, AreTheBytesOfItsOwnOptimizer) {
  const Result<JsonValue> golden = read_json("tests/golden/optimizer_states.json");
  ASSERT_TRUE(golden.ok());
  const std::vector<JsonValue>& rows = golden->find("torchao")->elements;
  ASSERT_EQ(rows.size(), 6U);
  for (const JsonValue& row : rows) {
    const std::string& name = row.find("model")->string;
    const StageStates states =
        states_on_one_gpu(*load_model(name), AdamwKernel::fused, DType::int8);
    EXPECT_EQ(states.moment_bytes(), row.find("resident_bytes")->integer) << name;
    EXPECT_EQ(states.on_host.bytes(), 0);
  }
}

// 2 + 8 / 256 B an element in place of 8.
TEST(BitsandbytesMoments, AreAQuarterInEightBitsAndNotOnTheGpuWherePaged) {
  const ModelSpec model = *load_model("mistral-7b-v0.1");
  const auto bytes = [&](AdamwKernel adamw) { return states_on_one_gpu(model, adamw); };
  const std::int64_t wide = bytes(AdamwKernel::fused).moments.bytes();
  const StageStates narrow = bytes(AdamwKernel::bnb_8bit);
  const StageStates paged = bytes(AdamwKernel::paged);
  const StageStates both = bytes(AdamwKernel::paged_8bit);
  EXPECT_LT(narrow.moment_bytes(), wide * 3 / 10);
  EXPECT_GT(narrow.moment_bytes(), wide / 4);
  EXPECT_EQ(paged.moment_bytes() + paged.on_host.bytes(), wide);
  EXPECT_EQ(both.moment_bytes() + both.on_host.bytes(), narrow.moment_bytes());
  EXPECT_EQ(both.moment_scales.bytes(), narrow.moment_scales.bytes());  // scales are never paged
}

}  // namespace
}  // namespace shardwise
