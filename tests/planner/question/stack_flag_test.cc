#include "planner/question/stack_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/engines/engines.h"
#include "planner/question/answer_estimate.h"
#include "planner/spec/report/memory_numbers.h"

namespace shardwise {
namespace {

AskedEstimate asked(const char* engine, const char* stack) {
  AskedEstimate a;
  a.job.model = "mistral-7b-v0.1";
  a.job.engine = engine;
  a.job.cluster = "dgx-a100";
  a.job.gpus = "8";
  a.job.texts = {{"global_batch_size", "64"}, {"stack", stack}};
  a.layout.texts = {{"recompute", "full"}};
  return a;
}

EstimateAnswer answered(const AskedEstimate& a) {
  Result<EstimateAnswer> answer = answer_estimate(a);
  EXPECT_TRUE(answer.ok()) << to_string(answer.problems());
  return *std::move(answer);
}

TEST(StackFlag, SetsWhatNobodyAsksAboutAndSaysSo) {
  const EstimateAnswer tuned = answered(asked("fsdp1", "tuned"));
  EXPECT_EQ(tuned.subject.job.kernels, Kernels::compiled);
  EXPECT_EQ(tuned.subject.job.loss, LossKernel::fused);
  EXPECT_EQ(tuned.subject.job.adamw, AdamwKernel::fused);
  const EstimateAnswer ordinary = answered(asked("fsdp1", "ordinary"));
  EXPECT_EQ(ordinary.subject.job.kernels, Kernels::eager);
  EXPECT_EQ(ordinary.subject.job.rms_norm, RmsNormKernel::composite);
  EXPECT_EQ(ordinary.subject.job.loss, LossKernel::materialised);
  EXPECT_EQ(ordinary.subject.job.adamw, AdamwKernel::foreach);
  EXPECT_GT(ordinary.report.step_time, tuned.report.step_time);
  EXPECT_THAT(ordinary.said, testing::Contains(testing::Field(
                                 &Assumption::text,
                                 "--stack ordinary of fsdp1: --kernels eager, --rms-norm "
                                 "composite, --loss materialised, --adamw foreach")));
}

TEST(StackFlag, LeavesWhatIsAskedFor) {
  AskedEstimate a = asked("fsdp1", "ordinary");
  a.job.texts["loss"] = "chunked";
  a.job.texts["adamw"] = "fused";
  const EstimateAnswer answer = answered(a);
  EXPECT_EQ(answer.subject.job.loss, LossKernel::chunked);
  EXPECT_EQ(answer.subject.job.adamw, AdamwKernel::fused);
  EXPECT_EQ(answer.subject.job.kernels, Kernels::eager);
}

// NVIDIA/Megatron-LM@d98e8a64:megatron/training/arguments.py: these are off unless given.
TEST(StackFlag, IsMegatronsOwnDefaultsWhereOrdinary) {
  AskedEstimate a = asked("megatron_ddp", "ordinary");
  a.layout.texts["tp"] = "2";
  const EstimateAnswer answer = answered(a);
  EXPECT_FALSE(answer.layout.overlap_grad_reduce);
  EXPECT_FALSE(answer.layout.overlap_param_gather);
  EXPECT_FALSE(answer.layout.sequence_parallel);
  EXPECT_EQ(answer.subject.job.loss, LossKernel::materialised);
  a.job.texts["stack"] = "tuned";
  EXPECT_TRUE(answered(a).layout.sequence_parallel);
}

TEST(StackFlag, NamesTheTwoAndRefusesOurOwnEngine) {
  const Result<EstimateAnswer> unknown = answer_estimate(asked("fsdp1", "usual"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(to_string(unknown.problems()), testing::HasSubstr("use tuned or ordinary"));
  const Result<EstimateAnswer> ours = answer_estimate(asked("shardwise", "tuned"));
  ASSERT_FALSE(ours.ok());
  EXPECT_THAT(to_string(ours.problems()), testing::HasSubstr("shardwise has one stack"));
}

TEST(StackFlag, IsLegalUnderEveryEngineThatHasOne) {
  for (const std::string& name : engine_names()) {
    if (!has_stacks(*find_engine(name))) continue;
    for (const char* stack : {"tuned", "ordinary"}) {
      SCOPED_TRACE(name + " " + stack);
      answered(asked(name.c_str(), stack));
    }
  }
}

}  // namespace
}  // namespace shardwise
