#include "planner/export/shell/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/configuration/job_files.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/unasked_rules.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What check says of the hardware queues that tensor parallelism asks for: "kept", "broken" or
/// "not known".
std::string queues_of(const std::vector<JobFile>& files) {
  const Result<Configuration> job = read_job(files);
  if (!job) return to_string(job.problems());
  const Result<Framework> framework = load_framework("megatron-lm", "--from");
  const auto cluster = find_cluster("dgx-h100");
  const auto found = check_configuration(*framework, *job, 8, *cluster);
  const auto unasked = unasked_rules(*framework, *job, 8, *cluster);
  if (!found || !unasked) return to_string(found ? unasked.problems() : found.problems());
  constexpr const char* kRule = "tensor_parallel_queues";
  const auto rule = std::ranges::find(*unasked, kRule, &UnaskedRule::rule);
  if (rule != unasked->end()) {
    EXPECT_THAT(rule->lacks, ElementsAre("CUDA_DEVICE_MAX_CONNECTIONS"));
    return "not known";
  }
  const bool broken = std::ranges::find(*found, kRule, &Finding::rule) != found->end();
  return broken ? "broken" : "kept";
}

constexpr const char* kTwoWays =
    "torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --bf16\n";

TEST(LaunchEnvironment, IsWhatLaunchersSet) {
  const std::string run = kTwoWays;
  EXPECT_EQ(queues_of({{"run.sh", run}}), "broken");
  for (const std::string before : {
           "srun --export=ALL,NCCL_DEBUG=INFO,CUDA_DEVICE_MAX_CONNECTIONS=1 ",
           "srun --export ALL,CUDA_DEVICE_MAX_CONNECTIONS=1 -N 1 ",
           "env CUDA_DEVICE_MAX_CONNECTIONS=1 ",
           "srun -N 1 env -u A CUDA_DEVICE_MAX_CONNECTIONS=1 ",
           "mpirun -np 8 -x PATH -x CUDA_DEVICE_MAX_CONNECTIONS=1 ",
           "mpiexec -genv CUDA_DEVICE_MAX_CONNECTIONS 1 -n 8 ",
           "docker run --gpus all -e CUDA_DEVICE_MAX_CONNECTIONS=1 image:1 ",
           "docker run --env=CUDA_DEVICE_MAX_CONNECTIONS=1 image:1 ",
           "apptainer exec --env A=1,CUDA_DEVICE_MAX_CONNECTIONS=1 image.sif ",
           "#SBATCH --export=ALL,CUDA_DEVICE_MAX_CONNECTIONS=1\n",
           "set -a\nCUDA_DEVICE_MAX_CONNECTIONS=1\nset +a\n",
           "set -o allexport\nCUDA_DEVICE_MAX_CONNECTIONS=1\n",
       }) {
    EXPECT_EQ(queues_of({{"run.sh", before + run}}), "kept") << before;
  }
  for (const std::string before : {
           "set -a\nset +a\nCUDA_DEVICE_MAX_CONNECTIONS=1\n",
           "set -euo pipefail\nCUDA_DEVICE_MAX_CONNECTIONS=1\n",
           "export CUDA_DEVICE_MAX_CONNECTIONS=1\nenv -u CUDA_DEVICE_MAX_CONNECTIONS ",
           "srun --export=ALL,CUDA_DEVICE_MAX_CONNECTIONS=8 ",
       }) {
    EXPECT_EQ(queues_of({{"run.sh", before + run}}), "broken") << before;
  }
}

TEST(LaunchEnvironment, IsNotKnownOfFilesThatAreNotGiven) {
  const std::string run = kTwoWays;
  for (const std::string before : {
           "source conf/env.sh\n",
           ". \"$HOME/env.sh\"\n",
           "[ -f env.sh ] && source env.sh\n",
           "if [ -f env.sh ]; then . env.sh; fi\n",
           "docker run --env-file env.sh image ",
           "export CUDA_DEVICE_MAX_CONNECTIONS=$QUEUES\n",
           "if [ -f fast ]; then export CUDA_DEVICE_MAX_CONNECTIONS=1; fi\n",
       }) {
    EXPECT_EQ(queues_of({{"run.sh", before + run}}), "not known") << before;
  }
  const Result<Configuration> job = read_job({{"run.sh", "source conf/env.sh\n" + run}});
  ASSERT_TRUE(job);
  EXPECT_THAT(to_string(job->notes),
              HasSubstr("run.sh:1: conf/env.sh is not read: what it sets is not known"));
  EXPECT_EQ(queues_of({{"run.sh", "source env.sh\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n" + run}}),
            "kept");
  const JobFile given = {"env.sh", "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"};
  const JobFile other = {"env.sh", "export NCCL_DEBUG=INFO\n"};
  EXPECT_EQ(queues_of({{"run.sh", "source conf/env.sh\n" + run}, given}), "kept");
  EXPECT_EQ(queues_of({{"run.sh", "source conf/env.sh\n" + run}, other}), "broken");
  EXPECT_EQ(queues_of({{"run.sh", "set -a\nsource env.sh\n" + run}, other}), "not known");
}

}  // namespace
}  // namespace shardwise
