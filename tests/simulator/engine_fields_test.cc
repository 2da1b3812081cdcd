// Every policy of an engine's profile changes something that Shardwise answers; what does not
// would be a statement about the engine that nothing holds to account.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "planner/cost/estimate.h"
#include "planner/cost/legality.h"
#include "planner/cost/runtime_memory.h"
#include "planner/engines/engines.h"
#include "planner/spec/names.h"
#include "planner/spec/plan_fields.h"
#include "planner/spec/report_json.h"
#include "simulator/simulate.h"
#include "tests/simulator/drawn_layouts.h"
#include "tests/support/seed.h"

namespace shardwise::sim {
namespace {

using nlohmann::json;

json profile_of(const EngineProfile& engine) {
  JsonWriter writer;
  writer.begin_object();
  write_fields(writer, engine);
  writer.end_object();
  return json::parse(writer.text());
}

/// The profile that `profile` describes, where the reader accepts it.
std::optional<EngineProfile> engine_of(const json& profile) {
  const Result<JsonValue> value = parse_json(profile.dump(), "profile");
  Diagnostics problems;
  ObjectReader reader(*value, "profile", "", problems);
  EngineProfile engine;
  read_fields(reader, engine);
  if (problems.empty()) return engine;
  return std::nullopt;
}

/// Jobs that together reach what a policy may touch.
std::vector<Plan> jobs(const EngineProfile& engine) {
  Plan dense = example("megatron_ddp", 8);
  dense.model = test::llama(4, 1024, 2816, 16, 4, 31999);
  dense.job.sequence_length = 1024;
  dense.job.global_batch_size = 16;
  Plan experts = dense;
  experts.model = test::mixture(4, 1024, 8, 16, 2, 512, 0);
  Plan narrow = dense;
  narrow.job.precision = DType::fp8;
  Plan summed = dense;
  summed.job.reduce_scatter_with_fp32_accumulation = true;
  std::vector<Plan> all = {dense, experts, narrow, summed};
  for (Plan& each : all) each.engine = engine;
  return all;
}

/// All that is said of layouts drawn from the engine's space: which they are, what is wrong with
/// them, their ledger and time, and what they take on the simulator's clock.
std::string answers(const EngineProfile& engine) {
  std::string said;
  for (Plan& plan : jobs(engine)) {
    const LayoutQuestion question =
        layout_question(plan.model, plan.cluster, plan.job, plan.engine);
    const SearchSpace usual = search_space(question, Breadth::usual);
    for (const bool each : usual.fp32_gradients) said += each ? "fp32 " : "narrow ";
    for (const bool each : usual.reduce_every_microbatch) said += each ? "every " : "last ";
    test::Sampler sampler(question, test::seed_of(13, "layouts"));
    int timed = 0;
    for (int i = 0; i < 600 && timed < 24; ++i) {
      plan.layout = sampler.draw();
      for (const std::string& key : layout_keys()) said += field_text(plan.layout, key) + " ";
      const Diagnostics problems =
          check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
      said += to_string(problems) + "\n";
      if (!problems.empty() || !sampler.legal(plan.layout)) continue;
      ++timed;
      const Simulation made = simulate(plan);
      said += to_json(made.report);
      for (const MemoryCourse& course : made.memory) {
        said += std::to_string(course.peak_allocated) + " " + std::to_string(course.peak_reserved);
      }
    }
  }
  return said;
}

/// Other values of a field, of which the reader may refuse some.
std::vector<json> others(const json& value) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_integer()) {
    const auto n = value.get<std::int64_t>();
    return {n + 8, n + 1'000'003, n + 2'000'000'000};
  }
  if (value.is_number()) return {value.get<double>() + 0.25, value.get<double>() + 0.01};
  if (value.is_array()) return {json::array({value.front()}), json::array({value.back()})};
  std::vector<json> names;
  const auto add = [&](const auto& all) {
    for (const std::string_view name : all) {
      if (name != value) names.emplace_back(std::string(name));
    }
  };
  add(names_of<MainWeights>());
  add(names_of<GatherBuffer>());
  add(names_of<GradientBuffer>());
  add(names_of<ShardPadding>());
  add(names_of<Kernels>());
  add(names_of<TpOverlap>());
  add(names_of<AllocatorKind>());
  add(dtype_names());
  return names;
}

/// Whether some engine is answered otherwise with another value at `pointer`.
bool matters(const json::json_pointer& pointer) {
  for (const std::string& name : engine_names()) {
    EngineProfile engine = *find_engine(name);
    engine.runtime = runtime_memory(engine, find_cluster("dgx-h100")->gpu);
    const json profile = profile_of(engine);
    std::string before;
    for (const json& other : others(profile.at(pointer))) {
      if (other == profile.at(pointer)) continue;
      json changed = profile;
      changed[pointer] = other;
      const std::optional<EngineProfile> another = engine_of(changed);
      if (!another) continue;
      if (before.empty()) before = answers(engine);
      if (answers(*another) != before) return true;
    }
  }
  return false;
}

TEST(EngineProfile, HasNoFieldThatChangesNoAnswer) {
  // How people and reports name it, and where it is known from.
  const std::set<std::string> descriptive = {"name", "label", "variant_of", "sources"};
  std::vector<std::string> pointers;
  for (const auto& [key, value] : profile_of(EngineProfile()).items()) {
    if (descriptive.contains(key)) continue;
    if (!value.is_object()) pointers.push_back("/" + key);
    for (const auto& [inner, _] : value.is_object() ? value.items() : json::object().items()) {
      pointers.push_back("/" + key + "/" + inner);
    }
  }
  for (const std::string& pointer : pointers) {
    EXPECT_TRUE(matters(json::json_pointer(pointer))) << pointer;
  }
}

// What is known of an engine by its name (configs/engines) holds for its variants.
TEST(EngineProfile, OfAVariantIsAnsweredAsItsBaseWhereItStatesNothingElse) {
  for (const std::string& name : engine_names()) {
    const EngineProfile& base = *find_engine(name);
    EngineProfile other = variant(base, "another", "Another");
    EXPECT_EQ(other.variant_of, name);
    EXPECT_EQ(variant(other, "third", "Third").variant_of, name);
    EXPECT_EQ(runtime_memory(other, find_cluster("dgx-h100")->gpu),
              runtime_memory(base, find_cluster("dgx-h100")->gpu));
    for (Plan& plan : jobs(base)) {
      plan.layout.dp_shard = 8;
      plan.layout.zero_stage = static_cast<std::int8_t>(base.zero_stages.back());
      const Seconds length = simulated_length(plan);
      plan.engine = other;
      EXPECT_EQ(simulated_length(plan), length) << name;
    }
  }
}

}  // namespace
}  // namespace shardwise::sim
