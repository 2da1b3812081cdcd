// What a run's ranks compute on, and what is refused before anything is built, on fake GPUs.
#include "executor/launch/rank_devices.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/cuda/cuda_platform.h"
#include "executor/launch/gpu_library.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/error.h"
#include "tests/executor/fake_gpus/fake_gpus.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

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

/// What is done with devices that were opened.
using Use = std::function<void(const RankDevices&)>;

/// "GPUs" or "CPU", or why not: "2: …" for what is wrong with the use, "3: …" for the environment.
std::string opened_of(const Plan& plan, const DeviceOptions& options, World* world,
                      const Use& use = {}) {
  try {
    const Result<RankDevices> devices = RankDevices::open(plan, options, world);
    if (!devices) return "2: " + to_string(devices.problems().front());
    if (use) use(*devices);
    return devices->on_gpus() ? "GPUs" : "CPU";
  } catch (const IoError& broken) {
    return std::string("3: ") + broken.what();
  }
}

/// In one process, whose ranks are threads.
std::string opened(const Plan& plan, const fake_cuda::Machine& machine,
                   const DeviceOptions& options = {}, const Use& use = {}) {
  reset_fake_gpus(1, machine);
  use_gpu_library(fake_gpu_plugin);
  return opened_of(plan, options, nullptr, use);
}

/// In a process for each of two ranks, for which threads stand.
std::vector<std::string> opened_by_processes(
    const fake_cuda::Machine& machine, const DeviceOptions& options,
    const std::function<void(int rank)>& before = {},
    const std::function<void(World&, const RankDevices&)>& use = {}) {
  reset_fake_gpus(1, machine);
  use_gpu_library(fake_gpu_plugin);
  std::vector<std::string> said(2);
  AbortSignal abort;
  const Plan plan = plan_of("dgx-h100", 2);
  run_ranks(2, abort, [&](World& world) {
    if (before) before(world.rank());
    said[static_cast<std::size_t>(world.rank())] =
        opened_of(plan, options, &world, [&](const RankDevices& devices) {
          if (use) use(world, devices);
        });
  });
  return said;
}

DeviceOptions on(DeviceKind kind) {
  DeviceOptions options;
  options.kind = kind;
  return options;
}

TEST(RankDevices, AreWhatThePlansClusterHas) {
  EXPECT_EQ(opened(plan_of("dgx-h100", 2), machine_of(2)), "GPUs");
  EXPECT_EQ(opened(plan_of("laptop", 2), machine_of(2)), "CPU");
  EXPECT_EQ(opened(plan_of("laptop", 2), machine_of(2), on(DeviceKind::cpu)), "CPU");
}

TEST(RankDevices, RefuseAPlanForGpusOnTheCpu) {
  for (const int gpus : {0, 2}) {
    EXPECT_THAT(opened(plan_of("dgx-h100", 2), machine_of(gpus), on(DeviceKind::cpu)),
                AllOf(HasSubstr("2: "), HasSubstr("--device: cpu, and the plan is for NVIDIA H100"),
                      HasSubstr("make a plan for a cluster of CPUs, or leave --device out")));
  }
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

// Where the runtime finds out itself.
TEST(RankDevices, NameBothVersionsWhereTheDriverDoesNotCountGpus) {
  reset_fake_gpus(1, machine_of(2));
  use_gpu_library(fake_gpu_plugin);
  fail_gpu_call("cudaGetDeviceCount", 0, cudaErrorInsufficientDriver);
  EXPECT_THAT(opened_of(plan_of("dgx-h100", 2), {}, nullptr),
              AllOf(HasSubstr("3: cudaGetDeviceCount: "),
                    HasSubstr("driver here is for CUDA 13.0, and this program for CUDA 13.0")));
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

TEST(RankDevices, AreAGpuForEachProcessOrAreRefusedByTheGpuThatTwoHave) {
  EXPECT_THAT(opened_by_processes(machine_of(2), {}), Each("GPUs"));
  EXPECT_THAT(opened_by_processes(machine_of(1), {}),
              Each(AllOf(HasSubstr("2: "), HasSubstr("ranks 0 and 1 have one GPU, fake GPU-fa"),
                         HasSubstr("--share-gpu"))));
}

// As Slurm's --gpus-per-task=1 does: each counts its own from 0.
TEST(RankDevices, AreTheOnlyGpuThatEachProcessSees) {
  EXPECT_THAT(opened_by_processes(
                  machine_of(4), {}, [](int rank) { fake_cuda::see_only(rank + 1); },
                  [](World& world, const RankDevices& devices) {
                    const std::string uuid = devices.device(world.rank())->facts().uuid;
                    EXPECT_EQ(uuid, "GPU-fa000000-0000-0000-0000-00000000000" +
                                        std::to_string(world.rank() + 1));
                  }),
              Each("GPUs"));
}

// Each process is a host to NCCL, which then takes two ranks of one GPU.
TEST(RankDevices, AreOneGpuThatProcessesShareByNccl) {
  DeviceOptions shared;
  shared.share_gpu = true;
  const std::vector<std::string> said =
      opened_by_processes(machine_of(1), shared, {}, [](World& world, const RankDevices& devices) {
        EXPECT_THAT(devices.notes(), Contains(HasSubstr("max_ctas=2")));
        EXPECT_EQ(devices.timings_note(),
                  "ranks share one GPU and move tensors through the host: timings mean nothing");
        EXPECT_THAT(devices.notes(), Contains(devices.timings_note()));
        AbortSignal abort;
        const std::unique_ptr<Device> device = devices.device(world.rank());
        const std::unique_ptr<Compute> compute = device->compute(1);
        const std::unique_ptr<World> tensors = device->world(world, *compute, abort);
        const auto group = tensors->communicator({0, 1}, Stream::all_gather);
        const DeviceMemory memory = device->allocate(4, MemorySpace::device);
        const std::unique_ptr<DeviceStream> stream = device->stream(StreamPriority::normal);
        float value = static_cast<float>(world.rank() + 1);
        device->upload(memory.at(), std::as_bytes(std::span(&value, 1)), *stream);
        group->all_reduce({memory.at(), 1, DType::fp32}, *stream);
        device->download(std::as_writable_bytes(std::span(&value, 1)), memory.at(), *stream);
        EXPECT_EQ(value, 3);
      });
  EXPECT_THAT(said, Each("GPUs"));
  EXPECT_THAT(gpu_complaints(), testing::IsEmpty());
  EXPECT_THAT(std::string(std::getenv("NCCL_HOSTID")), HasSubstr("shardwise-rank-"));
  EXPECT_STREQ(std::getenv("NCCL_NVLS_ENABLE"), "0");
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "lo");
  for (const char* name :
       {"NCCL_HOSTID", "NCCL_MNNVL_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_SOCKET_IFNAME"}) {
    unsetenv(name);
  }
}

TEST(RankDevices, GiveMemoryThatNcclCanRegisterWhereItIsToRegister) {
  for (const bool registers : {false, true}) {
    DeviceOptions options;
    options.gpus.nccl.symmetric_windows = registers;
    EXPECT_EQ(opened(plan_of("dgx-h100", 2), machine_of(2), options,
                     [&](const RankDevices& devices) {
                       const std::unique_ptr<Device> device = devices.device(0);
                       const DeviceMemory memory = device->allocate(100, MemorySpace::device);
                       EXPECT_EQ(fake_cuda::is_mappable(memory.at(), 100), registers);
                     }),
              "GPUs");
    EXPECT_EQ(fake_cuda::left_over(), "");
  }
}

TEST(RankDevices, SayWhatIsInForceOfNcclAndWhereNothingIs) {
  DeviceOptions options;
  options.gpus.nccl.protocol = "ll";
  const auto notes_of = [&](const Plan& plan, const fake_cuda::Machine& machine) {
    std::vector<std::string> notes;
    opened(plan, machine, options, [&](const RankDevices& devices) { notes = devices.notes(); });
    return notes;
  };
  setenv("NCCL_DEBUG", "WARN", 1);
  EXPECT_THAT(notes_of(plan_of("dgx-h100", 2), machine_of(2)),
              AllOf(Contains(HasSubstr(",protocol=ll")),
                    Contains("from the environment: NCCL_DEBUG=WARN")));
  EXPECT_STREQ(std::getenv("NCCL_PROTO"), "ll");
  unsetenv("NCCL_DEBUG");
  unsetenv("NCCL_PROTO");
  EXPECT_THAT(notes_of(plan_of("laptop", 2), machine_of(2)),
              Contains("--nccl is not used: ranks on the CPU move tensors without NCCL"));
  EXPECT_THAT(notes_of(plan_of("dgx-h100", 1), machine_of(1)),
              Contains("--nccl is not used: one rank moves no tensors"));
  options.share_gpu = true;
  const std::vector<std::string> copies = notes_of(plan_of("dgx-h100", 2), machine_of(1));
  EXPECT_THAT(copies, Contains("--nccl is not used: ranks of one process that share a GPU move "
                               "tensors by copies"));
  EXPECT_THAT(copies, Not(Contains(HasSubstr("NCCL 2."))));
  EXPECT_THAT(copies, Contains("ranks share one GPU and move tensors by copies: timings mean "
                               "nothing"));
  options = {};
  EXPECT_THAT(notes_of(plan_of("laptop", 2), machine_of(2)), testing::IsEmpty());
}

TEST(RankDevices, RefuseAGpuThatTheyHaveNoCodeFor) {
  fake_cuda::Machine turing = machine_of(2);
  turing.major = 7;
  turing.minor = 5;
  EXPECT_THAT(opened(plan_of("dgx-h100", 2), turing),
              AllOf(HasSubstr("3: "), HasSubstr("7.5"), HasSubstr("80-real,90-real")));
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

TEST(RankDevices, NameRanksThatHaveOneGpu) {
  DeviceFacts one;
  one.name = "H100";
  one.uuid = "GPU-1";
  DeviceFacts other = one;
  other.uuid = "GPU-2";
  EXPECT_TRUE(problems_of_sharing({one, other}).empty());
  const Diagnostics problems = problems_of_sharing({other, one, other});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems.front().message, "ranks 0 and 2 have one GPU, H100 GPU-2");
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
