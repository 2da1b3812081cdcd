// The whole program with the kernels of GPUs, on fakes of CUDA, cuBLASLt and NCCL, trains as it
// does on the CPU.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/report/report_json.h"
#include "tests/executor/fake_gpus/gpu_run.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Outcome;

/// How near a GPU's figure of a step is to the CPU's, relative.
struct Bounds {
  double loss = 0;
  double gradient_norm = 0;
  /// Norms of these first steps are held. Roundings grow from step to step, and a norm shows them
  /// long before a loss: where it leaps, one library's order of sums parts from another's by 3 %.
  std::size_t norms = 0;
};
// As for one pass of a model (CudaLayers): sums of other orders, roundings of bf16.
constexpr Bounds kFp32 = {3e-6, 3e-6, 10};
constexpr Bounds kBf16 = {0.001, 0.02, 5};

/// How a plan's ranks share it.
struct Way {
  int ranks = 1;
  int zero_stage = 0;
  std::int64_t num_microbatches = 1;
  bool share_gpu = false;  // tensors move by copies instead of by NCCL
  std::size_t steps = 5;   // with more, some are not recorded, of which the last are a graph
};
constexpr Way kWays[] = {{1, 0, 2, false}, {2, 3, 1, false, 10}, {2, 2, 2, false}, {2, 1, 1, true}};

/// Weights that move, and by what is far more than roundings.
std::vector<std::string> words_with(const std::string& metrics, const Way& way) {
  return {"--steps",         std::to_string(way.steps),
          "--metrics",       metrics,
          "--learning-rate", "0.003",
          "--timeout",       "60"};
}

/// `key`'s values of the two files: one for each of `steps`, the first `held` of them near.
void expect_near(const std::string& gpu, const std::string& cpu, const char* key, double bound,
                 std::size_t steps, std::size_t held, const std::string& what) {
  const std::vector<double> values = numbers_of(gpu, key);
  const std::vector<double> expected = numbers_of(cpu, key);
  ASSERT_EQ(values.size(), steps) << what;
  ASSERT_EQ(expected.size(), steps) << what;
  for (std::size_t s = 0; s < std::min(steps, held); ++s) {
    EXPECT_NEAR(values[s], expected[s], bound * expected[s]) << what << ", " << key << " " << s;
  }
}

void expect_as_on_the_cpu(const std::string& model, DType precision, const Way& way) {
  const std::string what = fmt::format("{} {} ZeRO-{} on {} ranks, {} micro-batches{}", model,
                                       name_of(precision), way.zero_stage, way.ranks,
                                       way.num_microbatches, way.share_gpu ? ", one GPU" : "");
  const Scratch scratch;
  const std::string plan =
      scratch.write(small_plan(model, precision, way.zero_stage, way.ranks, way.num_microbatches));
  const std::string on_gpu = scratch.path("gpu.jsonl");
  const std::string on_cpu = scratch.path("cpu.jsonl");
  std::vector<std::string> words = words_with(on_gpu, way);
  if (way.share_gpu) words.emplace_back("--share-gpu");
  const Outcome gpu = run_on_gpus(plan, words);
  ASSERT_EQ(gpu.exit_code, 0) << what << gpu.out << gpu.err;
  EXPECT_EQ(gpu.err, "") << what;
  EXPECT_THAT(gpu.out, testing::HasSubstr("kernels of GPUs on the host")) << what;
  const bool by_nccl = way.ranks > 1 && !way.share_gpu;
  EXPECT_EQ(gpu.out.find("sums over ranks are not in rank order") != std::string::npos, by_nccl)
      << gpu.out;
  words = words_with(on_cpu, way);
  Plan same = small_plan(model, precision, way.zero_stage, way.ranks, way.num_microbatches);
  same.cluster = *with_gpus(*find_cluster("laptop"), way.ranks);
  words.insert(words.begin(), {"train", scratch.write(same, "cpu.json"), "--device", "cpu"});
  const Outcome cpu = shardwise::test::shardwise_run(words);
  ASSERT_EQ(cpu.exit_code, 0) << what << cpu.err;
  const Bounds& bounds = precision == DType::fp32 ? kFp32 : kBf16;
  expect_near(on_gpu, on_cpu, "loss", bounds.loss, way.steps, way.steps, what);
  expect_near(on_gpu, on_cpu, "gradient_norm", bounds.gradient_norm, way.steps, bounds.norms, what);
  const std::vector<double> losses = numbers_of(on_cpu, "loss");
  EXPECT_LT(losses.back(), 0.97 * losses.front()) << what;
}

// The arena of the report is memory that the GPU lacks when the steps are over.
TEST(MemoryOfGpus, IsReadAtTheStartAndAtTheEndOfTheSteps) {
  const Scratch scratch;
  const std::string path = scratch.path("report.json");
  const Outcome done = run_on_gpus(scratch.write(small_plan("gpt2", DType::fp32, 0, 1)),
                                   {"--steps", "2", "--report", path}, {"FAKE_GPU_KERNELS=0"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Result<StepReport> report = read_report(path);
  ASSERT_TRUE(report) << to_string(report.problems());
  EXPECT_EQ(report->arena, report->stages.front().peak_allocated());
  const Bytes grown = report->device_used - report->device_used_at_start;
  EXPECT_GE(grown, report->arena);
  EXPECT_LE(grown, report->arena + Bytes(std::int64_t{1} << 20));
}

TEST(VersionsOfGpus, AreNamedWithTheGpusThatAreThere) {
  const auto said = [](const std::vector<std::string>& environment) {
    std::vector<std::string> words = environment;
    words.insert(words.end(), {shardwise::test::built("fake_gpu_shardwise_run"), "--version"});
    const Outcome done = shardwise::test::run_program("env", words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  };
  EXPECT_THAT(
      said({"FAKE_GPUS=2"}),
      testing::AllOf(testing::StartsWith("shardwise-run "), testing::HasSubstr("\nGPU 0: "),
                     testing::HasSubstr("\nGPU 1: "), testing::HasSubstr("compute capability 9.0"),
                     testing::HasSubstr("driver for CUDA 13.0"), testing::HasSubstr("NCCL")));
  EXPECT_THAT(said({"FAKE_GPU_DRIVER=0"}),
              testing::HasSubstr("\nno GPUs: there is no driver of NVIDIA's"));
  EXPECT_THAT(said({"FAKE_GPU_DRIVER=12000"}),
              testing::HasSubstr("\nGPUs cannot be used: the NVIDIA driver here is for CUDA 12.0"));
}

using Case = std::tuple<std::string, DType>;
class KernelsOfGpus : public testing::TestWithParam<Case> {};

TEST_P(KernelsOfGpus, TrainWholePlansAsTheCpuDoes) {
  const auto& [model, precision] = GetParam();
  for (const Way& way : kWays) {
    if (shardwise::test::kSanitized && way.num_microbatches == 2) continue;
    expect_as_on_the_cpu(model, precision, way);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, KernelsOfGpus,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::Values(DType::fp32, DType::bf16)),
                         [](const auto& param) {
                           return fmt::format("{}_{}", std::get<0>(param.param),
                                              name_of(std::get<1>(param.param)));
                         });

// A product of bf16 widens its blocks on the stack of whoever runs it.
TEST(KernelsOfTheCpu, FitOnTheStreamsOfTheFake) {
  const Scratch scratch;
  const std::string plan = scratch.write(small_plan("llama", DType::bf16, 0, 1));
  const Outcome gpu = run_on_gpus(plan, {"--steps", "1"}, {"FAKE_GPU_KERNELS=0"});
  EXPECT_EQ(gpu.exit_code, 0) << gpu.err;
}

}  // namespace
}  // namespace shardwise::exec::test
