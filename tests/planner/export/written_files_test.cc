// Files that a launch script writes for its job by here-documents.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/export/configuration/configuration.h"
#include "planner/export/export_folder.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"

namespace shardwise {
namespace {

/// A script that writes this DeepSpeed JSON for its job.
Result<Import> of_written(const std::string& json, const ShellStart& start = {}) {
  const std::string text = "MICRO=2\nSTAGE=${ZERO:-3}\ncat <<EOF > ds.json\n" + json +
                           "\nEOF\ndeepspeed --num_gpus 8 train.py --deepspeed ds.json\n";
  const Result<Configuration> job = read_configuration(text, "run.sh", {}, start);
  if (!job) return job.problems();
  AskedImport asked;
  asked.job = {"llama-2-7b", "dgx-h100", "", "", {}};
  return import_plan(*load_framework("deepspeed", "--from"), *job, asked);
}

TEST(Scripts, PutVariablesIntoFilesThatTheyWrite) {
  const std::string json =
      R"({"train_micro_batch_size_per_gpu": $MICRO, "zero_optimization": {"stage": ${STAGE}}})";
  const Result<Import> made = of_written(json);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.layout.micro_batch_size, 2);
  EXPECT_EQ(made->plan.layout.zero_stage, 3);
  ShellStart start;
  start.environment = {{"ZERO=1", 0, 0}};
  const Result<Import> other = of_written(json, start);
  ASSERT_TRUE(other.ok()) << to_string(other.problems());
  EXPECT_EQ(other->plan.layout.zero_stage, 1);
}

// Of those that nobody knows: kept where no plan has them, else asked for.
TEST(Scripts, KeepOrAskForVariablesOfFilesThatTheyWrite) {
  const Result<Import> kept = of_written(
      R"({"train_micro_batch_size_per_gpu": 1, "gradient_clipping": $CLIP, "steps_per_print": ${N:?}})");
  ASSERT_TRUE(kept.ok()) << to_string(kept.problems());
  ASSERT_EQ(kept->plan.kept.settings.size(), 2U);
  EXPECT_EQ(kept->plan.kept.settings.front().value, "\"$CLIP\"");
  const Framework deepspeed = *load_framework("deepspeed", "--to");
  const Result<Export> again = export_plan(kept->plan, deepspeed);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  const auto files = export_folder(*again, deepspeed, "");
  ASSERT_TRUE(files.ok()) << to_string(files.problems());
  EXPECT_EQ(files->front().text.find('$'), std::string::npos);
  EXPECT_THAT(export_notes(*again, deepspeed),
              testing::Contains(testing::HasSubstr("variables here: gradient_clipping \"$CLIP\"")));

  const Result<Import> asked = of_written(
      R"({"train_micro_batch_size_per_gpu": $BATCH, "zero_optimization": {"stage": 3}})");
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(to_string(asked.problems().front()),
            "run.sh:4:36: /train_micro_batch_size_per_gpu: nobody knows $BATCH, which should be an "
            "integer\n    state it behind --, as in -- NAME=1 bash run.sh");
}

}  // namespace
}  // namespace shardwise
