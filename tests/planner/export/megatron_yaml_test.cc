// Megatron-LM's YAML: keys are fields of its configuration classes, and flags beside it do not
// count.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/job_files.h"
#include "planner/export/export_folder.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "tests/planner/export/assumption_texts.h"

namespace shardwise {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kYaml =
    "language_model:\n"
    "  num_layers: 32\n"
    "  hidden_size: 4096\n"
    "  num_attention_heads: 32\n"
    "  add_bias_linear: False\n"
    "  gated_linear_unit: False\n"
    "  activation_func: swiglu\n"
    "  bias_dropout_fusion: False\n"
    "  normalization: RMSNorm\n"
    "  init_method: xavier_uniform\n"
    "model_parallel:\n"
    "  tensor_model_parallel_size: 2\n"
    "  bf16: True\n"
    "micro_batch_size: 1\n"
    "global_batch_size: 64\n"
    "seq_length: 4096\n"
    "use_distributed_optimizer: True\n"
    "overlap_p2p_comm: True\n";

constexpr const char* kCommand =
    "torchrun --nproc-per-node 8 --nnodes 4 pretrain_gpt.py --yaml-cfg job.yaml \\\n"
    "  --tensor-model-parallel-size 8 --lr 1e-4\n";

Framework megatron() { return *load_framework("megatron-lm", "--from"); }

Result<Import> imported_yaml(const Configuration& configuration) {
  AskedImport asked;
  asked.job.model = "llama-3-8b";
  asked.job.cluster = "dgx-h100";
  return import_plan(megatron(), configuration, asked);
}

TEST(MegatronYaml, HasFieldsThatFlagsNameOtherwise) {
  const Result<Configuration> configuration = read_configuration(kYaml, "job.yaml");
  ASSERT_TRUE(configuration.ok()) << to_string(configuration.problems());
  const Result<Import> made = imported_yaml(*configuration);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const Framework framework = megatron();
  const Result<Export> again = export_plan(made->plan, framework);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  const auto files = export_folder(*again, framework, "");
  ASSERT_TRUE(files.ok()) << to_string(files.problems());
  const std::string arguments = "\n" + files->front().text;
  EXPECT_THAT(arguments, HasSubstr("\n--swiglu\n"));
  EXPECT_THAT(arguments, HasSubstr("\n--disable-bias-linear\n"));
  EXPECT_THAT(arguments, HasSubstr("\n--no-bias-dropout-fusion\n"));
  for (const char* none : {"gated", "activation-func", "init-method", "add-bias", "p2p"}) {
    EXPECT_THAT(arguments, Not(HasSubstr(none)));
  }
  EXPECT_THAT(test::assumptions_of(*made),
              HasSubstr("no flag of Megatron-LM says the same: language_model.init_method"));
}

TEST(MegatronYaml, IsCheckedWithoutFindingsOfItsFields) {
  const Result<Configuration> configuration = read_configuration(kYaml, "job.yaml");
  ASSERT_TRUE(configuration.ok());
  const auto findings = check_configuration(megatron(), *configuration, 8, std::nullopt);
  ASSERT_TRUE(findings.ok()) << to_string(findings.problems());
  for (const Finding& each : *findings) ADD_FAILURE() << to_string(each.what);
}

TEST(MegatronYaml, CountsInsteadOfTheFlags) {
  const Result<Configuration> configuration = read_job({{"run.sh", kCommand}, {"job.yaml", kYaml}});
  ASSERT_TRUE(configuration.ok()) << to_string(configuration.problems());
  const Result<Import> made = imported_yaml(*configuration);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.layout.tp, 2);
  EXPECT_EQ(made->plan.layout.world(), 32);
  EXPECT_THAT(test::assumptions_of(*made),
              HasSubstr("--yaml-cfg, --tensor-model-parallel-size, --lr"));
  for (const KeptSetting& each : made->plan.kept.settings) EXPECT_NE(each.name, "--yaml-cfg");
  const auto findings = check_configuration(megatron(), *configuration, 0, std::nullopt);
  ASSERT_TRUE(findings.ok()) << to_string(findings.problems());
  ASSERT_EQ(findings->size(), 2U);
  EXPECT_EQ(to_string(findings->front().what),
            "run.sh:2:3: --tensor-model-parallel-size: not read: --yaml-cfg names the file of all "
            "settings, and job.yaml has 2\n    state it in the file");
}

TEST(MegatronYaml, IsAskedFor) {
  const Result<Configuration> configuration = read_job({{"run.sh", kCommand}});
  ASSERT_TRUE(configuration.ok());
  const Result<Import> made = imported_yaml(*configuration);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(to_string(made.problems().front()),
            "run.sh:1:56: --yaml-cfg: Megatron-LM takes all settings from job.yaml, and no flag\n"
            "    give that file too");
}

TEST(MegatronChecks, NameTheVariableOfTheAllocatorThatIsSet) {
  const Result<Configuration> configuration = read_configuration(
      "export PYTORCH_ALLOC_CONF=expandable_segments:True\n"
      "torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 1 --seq-length 1024 "
      "--use-nccl-ub\n",
      "run.sh");
  ASSERT_TRUE(configuration.ok());
  const auto findings = check_configuration(megatron(), *configuration, 8, std::nullopt);
  ASSERT_TRUE(findings.ok());
  ASSERT_FALSE(findings->empty());
  EXPECT_EQ(findings->front().what.path, "PYTORCH_ALLOC_CONF");
  EXPECT_EQ(findings->front().what.line, 1);
}

}  // namespace
}  // namespace shardwise
