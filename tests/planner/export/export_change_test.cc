// What an export says of its substitutions: the predicted change, and lines of a script.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "planner/engines/engines.h"
#include "planner/export/configuration/configuration.h"
#include "planner/export/export_folder.h"
#include "planner/export/export_plan.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/export/plan_comparison.h"
#include "planner/export/write_configuration.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Torchtitan runs a Megatron plan as another system; the change is a share of the plan's own step.
TEST(ExportedChange, IsThatOfAllSubstitutionsTogether) {
  Plan plan;
  plan.model = *load_model("llama-3.1-8b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 8);
  plan.engine = *find_engine("megatron_ddp");
  plan.layout.dp_shard = 8;
  plan.layout.zero_stage = 1;
  const Framework titan = *load_framework("torchtitan", "--to");
  const Result<Export> made = export_plan(plan, titan);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const Evaluation before = evaluation_of(plan);
  const Evaluation after = evaluation_of(made->plan);
  ASSERT_GT(made->substitutions.size(), 1U);
  EXPECT_EQ(made->memory_change, after.point - before.point);
  EXPECT_EQ(made->time_change, after.step_time - before.step_time);
  EXPECT_NE(made->time_change, Seconds(0));
  const double share = (after.step_time / before.step_time - 1) * 100;
  EXPECT_THAT(export_notes(*made, titan),
              Contains(AllOf(StartsWith("all of these together: "),
                             HasSubstr(fmt::format("{:.1f} % {} time", std::abs(share),
                                                   share > 0 ? "more" : "less")))));
  // What is not legal alone claims no figure.
  for (const Substitution& each : made->substitutions) {
    if (each.priced) continue;
    EXPECT_THAT(export_notes(*made, titan),
                Contains(AllOf(StartsWith(each.field + " "), EndsWith("with those that follow"))));
  }
}

// accelerate reduces in the type of mixed_precision: what that brings is priced, and the lines of a
// script that reduce in fp32 stand with it.
TEST(ExportedChange, HasTheLinesOfAScriptThatDoAsPlanned) {
  Plan plan;
  plan.model = *load_model("llama-3.1-8b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 32);
  plan.engine = *find_engine("fsdp2");
  plan.layout.dp_shard = 32;
  plan.layout.zero_stage = 3;
  const Framework accelerate = *load_framework("accelerate", "--to");
  const Result<Export> made = export_plan(plan, accelerate);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.engine.reduce_dtype, DType::bf16);
  EXPECT_LT(made->time_change, Seconds(0));
  EXPECT_THAT(
      export_notes(*made, accelerate),
      Contains(AllOf(StartsWith("fp32_gradients false instead of true: "),
                     HasSubstr(" time a step"), HasSubstr("\n    policy = MixedPrecisionPolicy(\n"),
                     HasSubstr("reduce_dtype=torch.float32"))));
  // Read again it reduces in bf16, unless a flag says that the script has these lines.
  const std::string yaml = configuration_text(accelerate, made->settings, {});
  const auto again = [&](const std::string& fp32) {
    AskedImport asked;
    asked.job = {"llama-3.1-8b", "dgx-h100", "", "", {}};
    asked.layout.texts["fp32_gradients"] = fp32;
    return import_plan(accelerate, *read_configuration(yaml, "a.yaml"), asked);
  };
  const Result<Import> narrow = again("");
  ASSERT_TRUE(narrow.ok()) << to_string(narrow.problems());
  EXPECT_EQ(narrow->plan.engine.reduce_dtype, DType::bf16);
  const Result<Import> wide = again("true");
  ASSERT_TRUE(wide.ok()) << to_string(wide.problems());
  EXPECT_EQ(wide->plan.engine.reduce_dtype, DType::fp32);
  EXPECT_LT(evaluation_of(narrow->plan).step_time, evaluation_of(wide->plan).step_time);
}

// Of a plan of DistributedDataParallel the file says MULTI_GPU and nothing of FSDP.
TEST(ExportedChange, OfDistributedDataParallelIsNoneAndIsReadAgain) {
  Plan plan;
  plan.model = *load_model("llama-3.2-1b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
  plan.engine = *find_engine("pytorch_ddp");
  plan.layout.dp_shard = 16;
  plan.layout.zero_stage = 0;
  const Framework accelerate = *load_framework("accelerate", "--to");
  const Result<Export> made = export_plan(plan, accelerate);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  for (const Substitution& each : made->substitutions)
    ADD_FAILURE() << each.field << " " << each.from << " " << each.to;
  const std::string yaml = configuration_text(accelerate, made->settings, {});
  EXPECT_THAT(yaml, HasSubstr("distributed_type: MULTI_GPU\n"));
  EXPECT_THAT(yaml, HasSubstr("mixed_precision: bf16\n"));
  EXPECT_THAT(yaml, HasSubstr("num_processes: 16\n"));
  EXPECT_EQ(yaml.find("fsdp"), std::string::npos) << yaml;
  AskedImport asked;
  asked.job = {"llama-3.2-1b", "dgx-h100", "", "", {}};
  const Result<Import> again = import_plan(accelerate, *read_configuration(yaml, "a.yaml"), asked);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  EXPECT_EQ(again->plan.engine, plan.engine);
  EXPECT_EQ(again->plan.layout, plan.layout);
}

}  // namespace
}  // namespace shardwise
