// What the frameworks' own parsers said, tests/golden/frameworks.py, and what the exported FSDP2
// script holds, tests/golden/exported_memory.py,
// and the jobs that ran, tests/golden/exported_script.py.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/export/export_plan.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/write_configuration.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/sha256.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

JsonValue golden(const std::string& file = "tests/golden/frameworks.json") {
  Result<JsonValue> read = read_json(file);
  EXPECT_TRUE(read.ok());
  return read ? *std::move(read) : JsonValue();
}

const std::string& text(const JsonValue& row, const char* key) { return row.find(key)->string; }

Plan golden_plan(const JsonValue& row) {
  Plan plan;
  plan.model = *load_model(text(row, "model"));
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), row.find("gpus")->integer);
  plan.engine = *find_engine(text(row, "engine"));
  Diagnostics problems;
  ObjectReader layout(*row.find("layout"), "golden", "/layout", problems);
  read_fields(layout, plan.layout);
  ObjectReader job(*row.find("job"), "golden", "/job", problems);
  read_fields(job, plan.job);
  EXPECT_TRUE(problems.empty()) << to_string(problems);
  return plan;
}

TEST(Exports, AreWhatTheFrameworksParsersAccepted) {
  const JsonValue all = golden();
  for (const JsonValue& row : all.find("exports")->elements) {
    const Result<Framework> framework = load_framework(text(row, "framework"), "--to");
    ASSERT_TRUE(framework.ok()) << to_string(framework.problems());
    const Plan plan = golden_plan(row);
    const Result<Export> made = export_plan(plan, *framework);
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    EXPECT_EQ(configuration_text(*framework, made->settings, {}), text(row, "configuration"))
        << "accepted was another text: run tests/golden/frameworks.py";
  }
  EXPECT_GE(all.find("exports")->elements.size(), 33U);
}

TEST(Exports, SayThePlansRanksAndMicroBatches) {
  const JsonValue all = golden();
  for (const JsonValue& row : all.find("exports")->elements) {
    const Plan plan = golden_plan(row);
    const JsonValue& said = *row.find("said");
    EXPECT_EQ(said.find("dp")->integer, plan.layout.dp()) << text(row, "configuration");
    const JsonValue* passes = said.find("micro_batches");
    if (passes == nullptr) continue;  // accelerate leaves them to the script
    EXPECT_EQ(passes->integer,
              plan.job.microbatches(plan.layout.dp(), plan.layout.micro_batch_size))
        << text(row, "configuration");
  }
}

TEST(Exports, SayThePlansStrategy) {
  const JsonValue all = golden();
  for (const JsonValue& row : all.find("exports")->elements) {
    const Plan plan = golden_plan(row);
    const std::string& engine = plan.engine.name;
    const std::string stage = field_text(plan.layout, "zero_stage");
    std::string wanted;
    if (engine == "megatron_ddp") wanted = stage == "1" ? "optim" : "ddp";
    if (engine == "fsdp2_in_megatron") wanted = "fsdp2";
    if (engine == "megatron_fsdp") {
      constexpr const char* kStrategies[] = {"no_shard", "optim", "optim_grads",
                                             "optim_grads_params"};
      wanted = kStrategies[std::stoul(stage)];
    }
    if (engine == "deepspeed") wanted = "zero " + stage;
    const bool frees = plan.layout.reshard_after_forward != 0;
    if (text(row, "framework") == "torchtitan") {
      wanted = plan.layout.dp_replicate > 1 ? "hsdp" : "fsdp";
    } else if (engine == "fsdp2") {
      wanted = frees ? "fsdp2 true" : "fsdp2 false";
    } else if (engine == "fsdp1") {
      wanted = frees ? "fsdp1 full_shard" : "fsdp1 shard_grad_op";
    }
    EXPECT_EQ(text(*row.find("said"), "strategy"), wanted) << text(row, "configuration");
  }
}

/// The answer to an example; null where nobody asked.
const JsonValue* answer_of(const JsonValue& all, const std::string& framework,
                           const std::string& rule, const std::string& example) {
  for (const JsonValue& row : all.find("examples")->elements) {
    if (text(row, "framework") == framework && text(row, "rule") == rule &&
        text(row, "example") == example) {
      return row.find("refused");
    }
  }
  return nullptr;
}

/// A rule that says "refused" and is not, or the other way, would send people in circles.
TEST(Rules, AreWhatTheFrameworksParsersDo) {
  const JsonValue all = golden();
  const auto expect = [&](const std::string& framework, const std::string& rule, bool refused) {
    for (const char* example : {"fails", "passes"}) {
      SCOPED_TRACE(fmt::format("{} {} {}", framework, rule, example));
      const JsonValue* answer = answer_of(all, framework, rule, example);
      ASSERT_NE(answer, nullptr) << "run tests/golden/frameworks.py";
      EXPECT_EQ(answer->kind == JsonValue::Kind::string, refused && example[0] == 'f');
    }
  };
  for (const JsonMember& asked : all.find("versions")->members) {
    const Result<Framework> framework = load_framework(asked.key, "--to");
    ASSERT_TRUE(framework.ok()) << to_string(framework.problems());
    EXPECT_EQ(framework->version, asked.value.string) << "rules of another version were asked";
    for (const CheckRule& rule : framework->rules) {
      expect(asked.key, rule.name, rule.kind == CheckRule::Kind::refused && !rule.after_parsing);
    }
  }
  // DeepSpeed takes keys that it does not know.
  for (const JsonMember& asked : all.find("versions")->members) {
    expect(asked.key, "unknown_key", asked.key != "deepspeed");
    expect(asked.key, "unknown_value", true);
  }
  expect("accelerate", "unread_key", false);  // of a section that it does not look into
  expect("megatron-lm", "unexpected_word", true);
  expect("megatron-lm", "removed_key", true);
  expect("torchtitan", "unknown_recipe", true);
  expect("torchtitan", "unknown_section", true);
  expect("torchtitan", "wrong_precision", true);
  expect("torchtitan", "misplaced_word", true);
  expect("deepspeed", "wrong_sizes", true);
  expect("deepspeed", "removed_key", true);
  expect("deepspeed", "unknown_section_key", true);
}

TEST(ExportedScript, HoldsWhatTheLedgerOfItsPlanSays) {
  const JsonValue all = golden("tests/golden/exported_memory.json");
  std::set<std::string> whole;
  std::set<std::string> by_chunks;
  for (const JsonValue& row : all.find("cases")->elements) {
    const Plan plan = golden_plan(row);
    const StepReport report =
        estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
    ASSERT_EQ(report.stages.size(), 1U);
    // A fake tensor on a CPU has no workspace of cuBLAS.
    std::int64_t ledger = 0;
    for (const Ledger& phase : report.stages.front().phases) {
      const std::int64_t workspace = phase[MemoryCategory::library_workspace];
      ledger = std::max(ledger, phase.allocated().value() - workspace);
    }
    const auto tracked = static_cast<double>(row.find("peak")->integer);
    EXPECT_NEAR(static_cast<double>(ledger) / tracked, 1, 0.01) << text(row, "model");
    const bool chunked = plan.job.loss == LossKernel::chunked;
    (chunked ? by_chunks : whole).insert(plan.model.name);
  }
  EXPECT_GE(whole.size(), 5U);
  EXPECT_GE(by_chunks.size(), 5U);
}

// tests/golden/exported_script.py trained with these settings and scripts for 5 steps.
TEST(ExportedScript, IsWhatTrainedOnTwoRanks) {
  const JsonValue all = golden("tests/golden/exported_script.json");
  for (const JsonMember& script : all.find("scripts")->members) {
    std::string name = script.key;
    std::ranges::replace(name, '-', '_');
    const std::string folder = "configs/frameworks/";
    const std::string ran = test::bytes_of_file(folder + "train_" + name + ".py") +
                            test::bytes_of_file(folder + "training_job.py");
    EXPECT_EQ(sha256(ran), script.value.string) << "run tests/golden/exported_script.py";
  }
  for (const JsonValue& row : all.find("cases")->elements) {
    const Result<Framework> framework = load_framework(text(row, "framework"), "--to");
    ASSERT_TRUE(framework.ok()) << to_string(framework.problems());
    const Result<Export> made = export_plan(golden_plan(row), *framework);
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    EXPECT_EQ(configuration_text(*framework, made->settings, {}), text(row, "configuration"))
        << "another job was run: run tests/golden/exported_script.py";
    EXPECT_EQ(row.find("losses")->elements.size(), 5U);
    EXPECT_EQ(row.find("norms")->elements.size(), 5U);
  }
  EXPECT_EQ(all.find("cases")->elements.size(), 14U);
}

}  // namespace
}  // namespace shardwise
