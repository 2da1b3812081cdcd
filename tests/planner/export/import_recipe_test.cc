// torchtitan's recipes outside the table.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/job_files.h"
#include "planner/export/export_folder.h"
#include "planner/export/export_plan.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/framework/recipe.h"
#include "planner/export/import_plan.h"
#include "planner/model/hf_config.h"
#include "tests/planner/export/assumption_texts.h"

namespace shardwise {
namespace {

using testing::HasSubstr;

/// Of a recipe whose model the table does not have.
Result<Import> of_recipe(const std::string& recipe, const std::string& model) {
  const Result<Configuration> configuration = read_configuration(
      "torchrun --nnodes 2 --nproc-per-node 8 -m torchtitan.train --module " + recipe +
          " --training.disable-cuda-graphs --training.local-batch-size 2",
      "run.sh");
  if (!configuration) return configuration.problems();
  AskedImport asked;
  asked.job = {model, "dgx-h100", "", "", {}};
  return import_plan(*load_framework("torchtitan", "--from"), *configuration, asked);
}

TEST(TorchtitanImports, TakeTheModelOfARecipeFromItsFlag) {
  const Result<Import> open = of_recipe("deepseek_v3 --config deepseek_v3_16b", "");
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(to_string(open.problems().front()),
            "run.sh:1:81: --config: which model deepseek_v3_16b trains is not known\n"
            "    --model NAME, or its config.json");
  const Result<Import> wrong = of_recipe("qwen3 --config qwen3_14c", "");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.problems().front().message, HasSubstr("qwen3_14c is no recipe of qwen3"));
  EXPECT_THAT(wrong.problems().front().hint, HasSubstr("did you mean qwen3_14b?"));

  const Result<Import> made = of_recipe("qwen3 --config sft_qwen3_8b_math", "qwen3-8b");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.model.name, "qwen3-8b");
  EXPECT_EQ(made->plan.job.sequence_length, 2048);  // torchtitan's default, which the recipe leaves
  EXPECT_THAT(made->plan.job.recompute_operations, testing::Not(testing::IsEmpty()));  // its own
  EXPECT_THAT(test::assumptions_of(*made), testing::Not(HasSubstr("sft_qwen3_8b_math is")));
  const Result<Import> said = of_recipe("qwen3 --config qwen3_debugmodel", "qwen3-0.6b");
  ASSERT_TRUE(said.ok()) << to_string(said.problems());
  EXPECT_THAT(test::assumptions_of(*said),
              HasSubstr("qwen3_debugmodel is a recipe for qwen3-0.6b, since --model says so\n"));

  const Framework framework = *load_framework("torchtitan", "--to");
  const Result<Export> again = export_plan(made->plan, framework);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  const auto files = export_folder(*again, framework, "");
  ASSERT_TRUE(files.ok()) << to_string(files.problems());
  const std::string& arguments = files->front().text;
  EXPECT_THAT(arguments, testing::StartsWith("--module qwen3\n--config sft_qwen3_8b_math\n"));
  EXPECT_EQ(arguments.find("--config", arguments.find("--config") + 1), std::string::npos);

  const Result<Import> by_name = of_recipe("mymod --config llama3_8b", "");
  ASSERT_TRUE(by_name.ok()) << to_string(by_name.problems());
  EXPECT_THAT(test::assumptions_of(*by_name),
              HasSubstr("llama3_8b is taken for the recipe of that name for llama-3.1-8b"));
  EXPECT_THAT(test::assumptions_of(*by_name), testing::Not(HasSubstr("--model says so")));

  // What such a recipe sets is not known: all is written.
  const Result<Import> float8 = of_recipe("llama3 --config llama3_8b_mxfp8", "llama-3.1-8b");
  ASSERT_TRUE(float8.ok()) << to_string(float8.problems());
  EXPECT_THAT(test::assumptions_of(*float8), HasSubstr("what it sets itself is not known"));
  const Result<Export> all = export_plan(float8->plan, framework);
  ASSERT_TRUE(all.ok()) << to_string(all.problems());
  EXPECT_THAT(export_folder(*all, framework, "")->front().text,
              HasSubstr("\n--training.dtype float32\n"));
}

// run_train.sh reads no TOML since 0.3: torchtitan's own script of older versions did.
TEST(TorchtitanImports, RefuseTheFileOfOlderVersions) {
  const Result<Configuration> job =
      read_job({}, {"CONFIG_FILE=./torchtitan/models/llama3/train_configs/llama3_8b.toml", "NGPU=8",
                    "./run_train.sh"});
  ASSERT_TRUE(job.ok()) << to_string(job.problems());
  const Result<Framework> framework = framework_of(*job, "", "--from");
  ASSERT_FALSE(framework.ok());
  EXPECT_EQ(to_string(framework.problems().front()),
            "command line: --job.config_file: an argument of torchtitan before 0.3: later versions "
            "read no TOML\n    --module, --config and the overrides");
}

// torchtitan 0.3.0, torchtitan/models/llama3/config_registry.py:295.
TEST(TorchtitanImports, KnowTheRecipeOfTheLargestLlama) {
  const Result<Import> made = of_recipe("llama3 --config llama3_405b", "");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.model.name, "llama-3.1-405b");
  EXPECT_EQ(made->plan.layout.tp, 8);
  EXPECT_EQ(made->plan.layout.recompute, Recompute::full);
  EXPECT_EQ(made->plan.job.sequence_length, 8192);
  EXPECT_THAT(test::assumptions_of(*made), HasSubstr("llama3_405b: it multiplies in float8"));
  EXPECT_THAT(test::assumptions_of(*made), testing::Not(HasSubstr("llama3_405b is")));

  // The plan keeps the recipe, and not all that it sets is written.
  const Framework framework = *load_framework("torchtitan", "--to");
  const Result<Export> again = export_plan(made->plan, framework);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  const std::string arguments = export_folder(*again, framework, "")->front().text;
  EXPECT_THAT(arguments, testing::StartsWith("--module llama3\n--config llama3_405b\n"));
  EXPECT_THAT(arguments, testing::Not(HasSubstr("--training.dtype")));

  const Result<Import> other = of_recipe("llama3 --config llama3_405b", "llama-3.1-8b");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(to_string(other.problems().front()),
            "command line: --model: llama-3.1-8b, but run.sh has llama-3.1-405b\n"
            "    leave the flag out, or change the file");
  const Result<Import> own = of_recipe("mymod --config llama3_405b", "");
  ASSERT_TRUE(own.ok()) << to_string(own.problems());
  EXPECT_THAT(test::assumptions_of(*own),
              HasSubstr("llama3_405b is taken for the recipe of that name for llama-3.1-405b"));
}

// What a recipe of that list sets is in the presets.
TEST(TorchtitanImports, KnowWhatRecipesOfModelsSet) {
  const Framework framework = *load_framework("torchtitan", "--to");
  ASSERT_FALSE(framework.recipes.trains.empty());
  for (const auto& [model, recipe] : framework.recipes.trains) {
    EXPECT_TRUE(knows_recipe(framework, {{"--config", recipe}})) << recipe;
    EXPECT_TRUE(load_model(model).ok()) << model;
  }
}

}  // namespace
}  // namespace shardwise
