#include "planner/cost/software/usual_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/cost/software/time_rules.h"
#include "planner/engines/engines.h"
#include "tests/support/models.h"

namespace shardwise::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(UsualLoss, IsPlainPyTorchsUnderEnginesThatLeaveItToTheScript) {
  for (const char* name : {"fsdp2", "fsdp1", "deepspeed"}) {
    EXPECT_EQ(loss_of(open_job(), *find_engine(name)), LossKernel::materialised) << name;
  }
  EXPECT_EQ(loss_of(open_job(), *find_engine("shardwise")), LossKernel::fused);
}

// Megatron-LM d98e8a64 refuses Transformer Engine's, and any that is fused in its deterministic
// mode: tests/golden/engine_refusals.py.
TEST(UsualLoss, IsOneThatMegatronRuns) {
  JobSpec job = open_job();
  for (const char* name : {"megatron_ddp", "megatron_fsdp", "fsdp2_in_megatron"}) {
    job.deterministic = false;
    EXPECT_EQ(loss_of(job, *find_engine(name)), LossKernel::fused_fp32) << name;
    job.deterministic = true;
    EXPECT_EQ(loss_of(job, *find_engine(name)), LossKernel::materialised) << name;
  }
}

TEST(FusedWeightGradients, NeedABufferToAddTo) {
  for (const char* name : {"megatron_ddp", "fsdp2_in_megatron"}) {
    const EngineProfile& engine = *find_engine(name);
    const bool has_buffer = engine.gradient_buffer != GradientBuffer::copy_in;
    EXPECT_EQ(settled_job(open_job(), engine).fused_gradient_accumulation, has_buffer) << name;
  }
}

TEST(UsualLoss, IsFusedWhereTheCompilerOrOurKernelsComputeIt) {
  JobSpec job = open_job();
  for (const Kernels kernels : {Kernels::compiled, Kernels::planned}) {
    job.kernels = kernels;
    EXPECT_EQ(loss_of(job, fsdp2()), LossKernel::fused);
  }
}

TEST(UsualLoss, GivesWayToTheJobs) {
  JobSpec job = open_job();
  job.loss = LossKernel::chunked;
  EXPECT_EQ(loss_of(job, fsdp2()), LossKernel::chunked);
  EXPECT_EQ(loss_of(job, megatron_ddp()), LossKernel::chunked);
}

std::vector<std::string> ids(const JobSpec& job, const EngineProfile& engine, bool adamw_open) {
  std::vector<std::string> all;
  for (const Assumption& each :
       usual_kernels_assumptions(llama_3_1_8b(), job, std::vector{&engine}, adamw_open)) {
    EXPECT_THAT(each.text, HasSubstr(engine.name));
    all.push_back(each.id);
  }
  return all;
}

// Memory and time ask the same rule which engines step with torch.optim.AdamW.
TEST(TorchAdamw, TakesLongerOperatorByOperatorWhereTheEngineStepsWithIt) {
  const auto bytes = [](const char* engine, AdamwKernel adamw) {
    JobSpec job = open_job();
    job.adamw = adamw;
    return time_rules(job, *find_engine(engine), ClusterSpec{}).optimizer_bytes;
  };
  for (const char* name : {"fsdp1", "fsdp2"}) {
    EXPECT_GT(bytes(name, AdamwKernel::foreach), bytes(name, AdamwKernel::fused)) << name;
  }
  for (const char* name : {"deepspeed", "megatron_ddp", "megatron_fsdp"}) {
    EXPECT_EQ(bytes(name, AdamwKernel::foreach), bytes(name, AdamwKernel::fused)) << name;
  }
}

TEST(UsualKernels, AreSaidWhereNobodyChoseThem) {
  EXPECT_THAT(ids(open_job(), fsdp2(), true),
              ElementsAre("loss.usual", "rms_norm.usual", "adamw.usual"));
  EXPECT_THAT(ids(open_job(), deepspeed(), true), ElementsAre("loss.usual", "rms_norm.usual"));
  EXPECT_THAT(ids(open_job(), megatron_ddp(), true), ElementsAre("loss.usual"));
  EXPECT_THAT(ids(open_job(), shardwise_engine(), true), IsEmpty());
  JobSpec compiled = open_job();
  compiled.kernels = Kernels::compiled;
  EXPECT_THAT(ids(compiled, fsdp2(), false), ElementsAre("loss.usual"));
  EXPECT_THAT(ids(open_job(), internevo(), false), Contains("loss.usual"));
  // Checkpoints matter where nothing of FSDP1's blocks is trained.
  JobSpec frozen = open_job();
  frozen.frozen_base = true;
  EXPECT_THAT(ids(frozen, fsdp1(), false), Contains("recompute.usual"));
  EXPECT_THAT(ids(frozen, fsdp2(), false), Not(Contains("recompute.usual")));
  frozen.recompute_stops_early = false;
  EXPECT_THAT(ids(frozen, fsdp1(), false), Not(Contains("recompute.usual")));
  // Engines that run the same share a sentence.
  const std::vector<const EngineProfile*> two = {find_engine("fsdp2"), find_engine("fsdp1")};
  const std::vector<Assumption> both =
      usual_kernels_assumptions(llama_3_1_8b(), open_job(), two, true);
  ASSERT_EQ(both.size(), 4U);
  EXPECT_THAT(both.front().text, HasSubstr("fsdp2, fsdp1: F.cross_entropy on whole logits"));
  JobSpec chosen = open_job();
  chosen.loss = LossKernel::fused;
  chosen.rms_norm = RmsNormKernel::composite;
  EXPECT_THAT(ids(chosen, fsdp2(), false), IsEmpty());
}

}  // namespace
}  // namespace shardwise::test
