// Traces as people find them: of 2021, of AMD GPUs, of another GPU than the plan's, of inference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/gpu_reader.h"
#include "simulator/comparison/import_run.h"
#include "simulator/traces/traced_gpu.h"
#include "tests/simulator/traces/text_source.h"

namespace shardwise::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TracedRun read_text(const std::string& text) {
  Result<TracedRun> run = read_trace(source_of(text), "t.json");
  EXPECT_TRUE(run.ok()) << to_string(run.problems());
  return run ? *std::move(run) : TracedRun{};
}

double microseconds_of(const StepProfile& profile, WorkKind kind, StepPhase phase) {
  for (const KindTime& time : profile.kinds) {
    if (time.kind == kind && time.phase == phase) return time.time.value() / kMicrosecond;
  }
  return 0;
}

/// One kernel and, in front of it, its launch by the host.
std::string kernel(const std::string& name, const std::string& at) {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": 7, "ts": )" +
         at + R"(, "dur": 10})";
}

TracedRun run_of(const std::string& device, const std::string& name) {
  return read_text(R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": ")" + device +
                   R"("}], "traceEvents": [)" + kernel(name, "0") + "]}");
}

std::vector<std::string> notes_of(const TracedRun& run, const char* cluster) {
  Plan plan = {*load_model("gpt2"), *find_cluster(cluster), {}, *find_engine("megatron_ddp"), {}};
  plan.layout.zero_stage = 1;
  plan.layout.dp_shard = 8;
  plan.job.sequence_length = 1024;
  plan.job.global_batch_size = 32;
  const Result<ImportedRun> imported = import_run(run, "t.json", plan, {}, "");
  EXPECT_TRUE(imported.ok());
  return imported ? import_notes(run, imported->comparison) : std::vector<std::string>{};
}

// Categories, streams and threads as torch.profiler wrote them until PyTorch 1.11.
TEST(FoundTraces, Of2021AreRead) {
  const TracedRun run = read_text(*read_file("tests/golden/profiler_2021.json"));
  ASSERT_EQ(run.profiled.steps.size(), 1U);
  EXPECT_EQ(run.profiled.steps[0].name, "ProfilerStep#7");
  EXPECT_EQ(run.profiled.operations, 5);
  EXPECT_EQ(run.profiled.without_launch, 2);  // the copy and the fill
  EXPECT_EQ(run.profiled.overlapping, 0);     // two streams overlap, no stream with itself
  EXPECT_TRUE(run.not_read.empty());
  const StepProfile& step = run.profiled.steps[0].profile;
  EXPECT_NEAR(microseconds_of(step, WorkKind::gemm, StepPhase::forward), 200, 1e-6);
  EXPECT_NEAR(microseconds_of(step, WorkKind::gemm, StepPhase::backward), 300, 1e-6);
  EXPECT_NEAR(microseconds_of(step, WorkKind::all_reduce, StepPhase::backward), 330, 1e-6);
}

// RCCL runs one kernel for all collectives: the host's mark says which.
TEST(FoundTraces, OfAmdNameACollectiveByItsCall) {
  const TracedRun run = read_text(R"([
    {"ph": "X", "cat": "user_annotation", "name": "nccl:_reduce_scatter_base", "pid": 9, "tid": 3,
     "ts": 0, "dur": 20},
    {"ph": "X", "cat": "cuda_runtime", "name": "hipExtLaunchKernel", "pid": 9, "tid": 3, "ts": 5,
     "dur": 4, "args": {"correlation": 8}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic_4",
     "pid": 0, "tid": 1, "ts": 30, "dur": 50, "args": {
  "correlation" : 8}}])");
  ASSERT_EQ(run.profiled.kernels.size(), 1U);
  EXPECT_EQ(run.profiled.kernels[0].kind, WorkKind::reduce_scatter);
}

TEST(FoundTraces, SayThatTheGpuIsAnother) {
  EXPECT_THAT(notes_of(run_of("NVIDIA A100-SXM4-80GB", "flash_bwd"), "dgx-h100"),
              Contains("the trace is of another GPU, NVIDIA A100-SXM4-80GB; the plan has NVIDIA "
                       "H100 SXM5 80 GB: times differ by that too"));
  EXPECT_THAT(notes_of(run_of("NVIDIA H100 80GB HBM3", "flash_bwd"), "dgx-h100"),
              Not(Contains(HasSubstr("another GPU"))));
  EXPECT_THAT(notes_of(run_of("", "flash_bwd"), "dgx-h100"),
              Not(Contains(HasSubstr("another GPU"))));
}

TEST(FoundTraces, SayThatTheyHaveNoBackwardPass) {
  const auto no_backward = Contains(HasSubstr("no backward pass in the trace"));
  EXPECT_THAT(notes_of(run_of("", "ampere_bf16_s16816gemm_bf16_tn"), "dgx-h100"), no_backward);
  EXPECT_THAT(notes_of(run_of("", "flash_bwd_kernel"), "dgx-h100"), Not(no_backward));
}

TEST(IsOtherGpu, ComparesModelFormAndMemory) {
  const auto other = [](const char* device, const char* gpu) {
    return is_other_gpu(device, *find_gpu(gpu));
  };
  // Names as cudaGetDeviceProperties and hipGetDeviceProperties give them.
  EXPECT_FALSE(other("NVIDIA H100 80GB HBM3", "h100-sxm"));
  EXPECT_FALSE(other("NVIDIA A100-SXM4-80GB", "a100-80-sxm"));
  EXPECT_FALSE(other("A100-SXM4-40GB", "a100-40-sxm"));
  EXPECT_FALSE(other("NVIDIA A100 80GB PCIe", "a100-80-pcie"));
  EXPECT_FALSE(other("Tesla V100-SXM2-16GB", "v100-16-sxm"));
  EXPECT_FALSE(other("NVIDIA GH200 480GB", "gh200-96"));
  EXPECT_FALSE(other("NVIDIA H100 NVL", "h100-nvl"));
  EXPECT_FALSE(other("NVIDIA GeForce RTX 4090", "rtx-4090"));
  EXPECT_FALSE(other("AMD Instinct MI300X", "mi300x"));
  EXPECT_FALSE(other("NVIDIA B200", "b200"));
  EXPECT_FALSE(other("a device without a number", "h100-sxm"));
  EXPECT_TRUE(other("NVIDIA A100-SXM4-80GB", "a100-40-sxm"));
  EXPECT_TRUE(other("NVIDIA H100 PCIe", "h100-sxm"));
  EXPECT_TRUE(other("NVIDIA H100 80GB HBM3", "h100-nvl"));
  EXPECT_TRUE(other("NVIDIA H200", "h100-sxm"));
  EXPECT_TRUE(other("NVIDIA GeForce RTX 3090", "rtx-4090"));
  EXPECT_TRUE(other("AMD Instinct MI250X", "mi300x"));
  EXPECT_TRUE(other("NVIDIA H100 80GB HBM3", "cpu"));
}

}  // namespace
}  // namespace shardwise::sim
