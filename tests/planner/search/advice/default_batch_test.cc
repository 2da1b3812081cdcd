#include "planner/search/advice/default_batch.h"

#include <gtest/gtest.h>

#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

std::int64_t usual(std::int64_t sequence_length) {
  JobSpec job;
  job.sequence_length = sequence_length;
  return default_batch(*find_cluster("dgx-h100"), job);
}

TEST(DefaultBatch, IsThePowerOfTwoOfAboutFourMebitokens) {
  EXPECT_EQ(usual(4096), 1024);
  EXPECT_EQ(usual(8192), 512);
  EXPECT_EQ(usual(6000), 512);  // 699 sequences make 4 Mi
  EXPECT_EQ(usual(1), 4'194'304);
  EXPECT_EQ(usual(10'000'000), 1);
}

// CPUs: about 16 Ki tokens, the next multiple of the ranks, so that every rank has a sequence.
TEST(DefaultBatch, IsSmallOnCpus) {
  ClusterSpec cpus = *find_cluster("laptop");
  JobSpec job;
  const std::int64_t ranks[] = {1, 3, 4, 8};
  const std::int64_t of_4096[] = {4, 6, 4, 8};
  const std::int64_t of_128[] = {128, 129, 128, 128};
  for (std::size_t i = 0; i < 4; ++i) {
    cpus.gpus = ranks[i];
    job.sequence_length = 4096;
    EXPECT_EQ(default_batch(cpus, job), of_4096[i]);
    job.sequence_length = 128;
    EXPECT_EQ(default_batch(cpus, job), of_128[i]);
  }
  job.global_batch_size = 6;
  job.sequence_length = 4096;
  EXPECT_EQ(batch_assumption(cpus, job).text,
            "batch of 6 sequences, 24 Ki tokens a step (--global-batch-size)");
  job.sequence_length = 1'000'000'000;
  EXPECT_EQ(batch_assumption(cpus, job).text,
            "batch of 6 sequences, 5.588 Gi tokens a step (--global-batch-size)");
}

// A layout that divides the batch changes nothing; one that does not takes the next larger batch
// that it can run.
TEST(DefaultBatch, IsTheNextThatALayoutDivides) {
  const ModelSpec model = *load_model("llama-3.1-8b");
  for (const std::int32_t dp : {1, 3, 8, 12, 600, 2048}) {
    for (const std::int32_t pp : {1, 4}) {
      for (const std::int32_t vpp : {1, 2}) {
        for (const PipelineSchedule schedule :
             {PipelineSchedule::one_f_one_b, PipelineSchedule::zb_h2, PipelineSchedule::dualpipe}) {
          if ((pp == 1 || schedule != PipelineSchedule::one_f_one_b) && vpp > 1) continue;
          if (pp == 1 && schedule != PipelineSchedule::one_f_one_b) continue;
          EngineProfile engine = megatron_ddp();
          engine.schedules = {schedule};
          Layout layout;
          layout.dp_shard = dp;
          layout.pp = pp;
          layout.vpp = vpp;
          layout.schedule = schedule;
          layout.micro_batch_size = 2;
          layout.zero_stage = 1;
          const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), layout.world());
          JobSpec job;
          job.global_batch_size = default_batch(cluster, job, layout);
          const Diagnostics problems = check_layout(model, cluster, job, engine, layout);
          EXPECT_TRUE(problems.empty()) << to_string(problems);
          EXPECT_GE(job.global_batch_size, 1024);
          const bool divides = 1024 % (2 * dp) == 0 && 1024 / (2 * dp) >= 2 * pp;
          EXPECT_EQ(job.global_batch_size == 1024, divides) << dp << " " << pp;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardwise
