// What a run's ranks compute on, and what is refused before anything is built, on fake GPUs.
#include "executor/launch/rank_devices.h"

#include <gmock/gmock.h>

#include "executor/cuda/cuda_platform.h"
#include "executor/launch/gpu_library.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/error.h"
#include "tests/executor/fake_gpus/fake_gpus.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Plan plan_of(const char* cluster, int ranks) {
  Plan plan = tiny_plan("shardwise", 1, ranks, 1);
  plan.cluster = *with_gpus(*find_cluster(cluster), ranks);
  return plan;
}

fake_cuda::Machine machine_of(int gpus) {
  fake_cuda::Machine machine;
  machine.devices = gpus;
  machine.total_bytes = std::int64_t{16} << 30;
  return machine;
}

/// "GPUs" or "CPU", or why not: "2: …" for what is wrong with the use, "3: …" for the environment.
std::string opened(const Plan& plan, const fake_cuda::Machine& machine,
                   const DeviceOptions& options = {}) {
  reset_fake_gpus(1, machine);
  use_gpu_library(fake_gpu_plugin);
  try {
    const Result<RankDevices> devices = RankDevices::open(plan, options, nullptr);
    if (!devices) return "2: " + to_string(devices.problems().front());
    return devices->on_gpus() ? "GPUs" : "CPU";
  } catch (const IoError& broken) {
    return std::string("3: ") + broken.what();
  }
}

DeviceOptions on(DeviceKind kind) {
  DeviceOptions options;
  options.kind = kind;
  return options;
}

TEST(RankDevices, AreWhatThePlansClusterHas) {
  EXPECT_EQ(opened(plan_of("dgx-h100", 2), machine_of(2)), "GPUs");
  EXPECT_EQ(opened(plan_of("laptop", 2), machine_of(2)), "CPU");
  EXPECT_EQ(opened(plan_of("dgx-h100", 2), machine_of(2), on(DeviceKind::cpu)), "CPU");
}

TEST(RankDevices, AreTheCpuWhereTheMachineHasNoGpuUnlessTheyAreToBeGpus) {
  fake_cuda::Machine bare = machine_of(2);
  bare.driver_version = 0;
  EXPECT_EQ(opened(plan_of("dgx-h100", 2), bare), "CPU");
  EXPECT_EQ(opened(plan_of("dgx-h100", 2), machine_of(0)), "CPU");
  EXPECT_THAT(opened(plan_of("dgx-h100", 2), bare, on(DeviceKind::cuda)),
              AllOf(HasSubstr("3: "), HasSubstr("no driver")));
  EXPECT_THAT(opened(plan_of("dgx-h100", 2), machine_of(0), on(DeviceKind::cuda)),
              AllOf(HasSubstr("3: "), HasSubstr("no GPU")));
}

TEST(RankDevices, RunDeterministicKernelsWhereTheJobSaysSo) {
  for (const bool deterministic : {true, false}) {
    Plan plan = plan_of("dgx-h100", 1);
    plan.job.deterministic = deterministic;
    reset_fake_gpus(1, machine_of(1));
    use_gpu_library(fake_gpu_plugin);
    const Result<RankDevices> devices = RankDevices::open(plan, {}, nullptr);
    ASSERT_TRUE(devices.ok());
    const std::unique_ptr<Device> device = devices->device(0);
    static_cast<void>(device->compute(1));
    EXPECT_EQ(gpus_are_deterministic(), deterministic);
  }
}

TEST(RankDevices, RefuseADriverThatIsTooOldWithBothVersions) {
  fake_cuda::Machine old = machine_of(2);
  old.driver_version = 12040;
  EXPECT_THAT(opened(plan_of("dgx-h100", 2), old),
              AllOf(HasSubstr("3: "), HasSubstr("CUDA 12.4"), HasSubstr("CUDA 13.0")));
}

TEST(RankDevices, RefuseAPlanForCpusOnGpus) {
  EXPECT_THAT(opened(plan_of("laptop", 2), machine_of(2), on(DeviceKind::cuda)),
              AllOf(HasSubstr("2: "), HasSubstr("--device"), HasSubstr("the plan is for")));
}

TEST(RankDevices, RefuseMoreRanksThanGpusThatAreNotShared) {
  EXPECT_THAT(
      opened(plan_of("dgx-h100", 4), machine_of(2)),
      AllOf(HasSubstr("2: "), HasSubstr("4 ranks"), HasSubstr("2 GPUs"), HasSubstr("--share-gpu")));
  DeviceOptions shared;
  shared.share_gpu = true;
  EXPECT_EQ(opened(plan_of("dgx-h100", 4), machine_of(1), shared), "GPUs");
}

TEST(RankDevices, RefuseAGpuThatTheyHaveNoCodeFor) {
  fake_cuda::Machine turing = machine_of(2);
  turing.major = 7;
  turing.minor = 5;
  EXPECT_THAT(opened(plan_of("dgx-h100", 2), turing), AllOf(HasSubstr("3: "), HasSubstr("7.5")));
}

// Its kernels have other workspaces than the plan's ledger counts.
TEST(RankDevices, RefuseAPlanForGpusOfAnotherArchitectureNamingBoth) {
  const std::string refused = opened(plan_of("dgx-a100", 2), machine_of(2));
  EXPECT_THAT(refused, AllOf(HasSubstr("2: "), HasSubstr("is ampere (NVIDIA A100"),
                             HasSubstr("(hopper)"), HasSubstr("plan for a cluster of this GPU")));
  fake_cuda::Machine ampere = machine_of(2);
  ampere.major = 8;
  ampere.minor = 6;
  EXPECT_EQ(opened(plan_of("dgx-a100", 2), ampere), "GPUs");
  ampere.minor = 9;
  EXPECT_THAT(opened(plan_of("dgx-a100", 2), ampere), AllOf(HasSubstr("2: "), HasSubstr("(ada)")));
  fake_cuda::Machine blackwell = machine_of(2);
  blackwell.major = 12;
  EXPECT_THAT(opened(plan_of("dgx-b200", 2), blackwell), HasSubstr("(blackwell-rtx)"));
  blackwell.major = 10;
  blackwell.minor = 3;
  EXPECT_EQ(opened(plan_of("dgx-b200", 2), blackwell), "GPUs");
}

TEST(RankDevices, RefuseAPlanForGpusThatHaveNoKernels) {
  const std::string refused = opened(plan_of("dgx-1-v100", 2), machine_of(2));
  EXPECT_THAT(refused, AllOf(HasSubstr("2: "), HasSubstr("is volta"), HasSubstr("(hopper)")));
}

TEST(RankDevices, RefuseAPlanThatNeedsMoreThanIsFreeWithBothFiguresAndAChangeThatFits) {
  Plan plan = plan_of("dgx-h100", 2);
  plan.job.sequence_length = 1024;
  plan.layout.micro_batch_size = 512;
  plan.job.global_batch_size = 1024;
  fake_cuda::Machine small = machine_of(2);
  small.total_bytes = std::int64_t{1500} << 20;
  const std::string refused = opened(plan, small);
  EXPECT_THAT(refused, AllOf(HasSubstr("2: "), HasSubstr("needs "), HasSubstr("1.46 GiB are free"),
                             HasSubstr("plan with --")));
}

TEST(RankDevices, NameGpusThatAreNotAlike) {
  DeviceFacts one;
  one.name = "H100";
  DeviceFacts other;
  other.name = "A100";
  EXPECT_TRUE(problems_of_mixture({one, one}).empty());
  const Diagnostics problems = problems_of_mixture({one, one, other});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems.front().message, "rank 2 has a GPU A100, rank 0 one H100");
}

TEST(Architectures, RunOnGpusOfTheirMajorCapabilityAndPtxOnLaterOnes) {
  const std::string built = "80-real,90-real,100-real,120";
  for (const int runs : {80, 86, 89, 90, 100, 103, 120, 121, 130}) {
    EXPECT_TRUE(runs_on(runs, built)) << runs;
  }
  for (const int lacks : {70, 75, 110}) EXPECT_FALSE(runs_on(lacks, built)) << lacks;
  EXPECT_TRUE(runs_on(90, "90a-real"));
  EXPECT_FALSE(runs_on(91, "90a-real"));
  EXPECT_TRUE(runs_on(100, "80-virtual"));
}

}  // namespace
}  // namespace shardwise::exec::test
