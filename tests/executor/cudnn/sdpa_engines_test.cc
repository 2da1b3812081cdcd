// What the real cuDNN says of GPUs that are described to it: no GPU is needed.
#include "executor/kernels/cudnn/sdpa_engines.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "executor/kernels/cudnn/sdpa_plan.h"
#include "planner/cost/kernels/gpu_workspace.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec {
namespace {

/// Properties of a data-centre GPU but for its architecture, 10 times that of sm_90 as 900.
std::string properties(int architecture) {
  return fmt::format(
      R"({{"deviceName":"described","cudaDeviceId":0,"deviceVer":{},"driverVer":13000,)"
      R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
      R"("regsPerBlock":65536,"multiProcessorCount":132,"warpSize":32,)"
      R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":{},)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
      R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
      R"("supportCoopLaunch":1,"smClockRateKHz":1980000,"memClockRateKHz":2619000,)"
      R"("l2CacheSize":52428800,"totalGlobalMem":85520809984}})",
      architecture * 10,
      architecture == 120  ? 101376
      : architecture == 80 ? 166912
                           : 232448);
}

/// cuDNN and a driver for it to load, of which the toolkit's stub does; or why there is none.
struct Described {
  Described() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
#if defined(SHARDWISE_CUDA_DRIVER_STUB)
    if (driver == nullptr) driver = dlopen(SHARDWISE_CUDA_DRIVER_STUB, RTLD_NOW | RTLD_GLOBAL);
#endif
    if (driver == nullptr) {
      missing = "neither a driver nor the toolkit's stub of one on this machine";
      return;
    }
    try {
      library.emplace(CudnnLibrary::open());
    } catch (const IoError& error) {
      missing = error.what();
    }
  }
  std::optional<CudnnLibrary> library;
  std::string missing;
};

const Described& described() {
  static const Described kDescribed;
  return kDescribed;
}

class CudnnAttentionOn : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << "cuDNN leaks, and is not ours to mend";
    if (!described().library) GTEST_SKIP() << described().missing;
    library_ = &*described().library;
  }
  SdpaEngines engines(const AttentionShape& shape, SdpaPass pass,
                      bool deterministic = false) const {
    return {*library_, {shape, pass, deterministic}, {nullptr, properties(GetParam())}};
  }
  const CudnnLibrary* library_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Architectures, CudnnAttentionOn, testing::Values(80, 90, 100, 120),
                         [](const auto& tested) { return fmt::format("sm_{}", tested.param); });

struct Heads {
  std::int64_t heads;
  std::int64_t kv_heads;
};
constexpr Heads kHeads[] = {{12, 12}, {32, 8}, {25, 25}};

TEST_P(CudnnAttentionOn, HasEnginesForTheModelsWeTrainWithinTheLedgersBytes) {
  for (const SdpaPass pass : {SdpaPass::forward, SdpaPass::backward}) {
    for (const std::int64_t head_dim : {64, 128}) {
      for (const Heads heads : kHeads) {
        for (const std::int64_t window : {0, 512}) {
          for (const std::int64_t sequence : {1024, 8192}) {
            for (const std::int64_t batch : {1, 16}) {
              const AttentionShape shape = {batch,          sequence, heads.heads,
                                            heads.kv_heads, head_dim, window};
              const std::string said = fmt::format("pass {}: {} x {}, {}/{} heads of {}, window {}",
                                                   static_cast<int>(pass), batch, sequence,
                                                   heads.heads, heads.kv_heads, head_dim, window);
              const SdpaEngines found = engines(shape, pass);
              ASSERT_EQ(found.refusal(), "") << said;
              EXPECT_LE(
                  found.engines().front().workspace_bytes,
                  pass == SdpaPass::forward
                      ? 256
                      : sdpa_engine_bytes(
                            {batch, sequence, {heads.heads, heads.kv_heads, head_dim}, GetParam()}))
                  << said;
            }
          }
        }
      }
    }
  }
}

TEST_P(CudnnAttentionOn, HasDeterministicEnginesWithinTheLedgersBytes) {
  for (const std::int64_t head_dim : {64, 128}) {
    for (const Heads heads : kHeads) {
      for (const std::int64_t window : {0, 512}) {
        for (const std::int64_t sequence : {1024, 4096}) {
          for (const std::int64_t batch : {1, 16}) {
            const AttentionShape shape = {batch,          sequence, heads.heads,
                                          heads.kv_heads, head_dim, window};
            const SdpaBackward backward = {
                batch, sequence, {heads.heads, heads.kv_heads, head_dim}, GetParam(), true};
            if (!sdpa_backward_by_cudnn(backward)) continue;
            const std::string said =
                fmt::format("{} x {}, {}/{} heads of {}, window {}", batch, sequence, heads.heads,
                            heads.kv_heads, head_dim, window);
            const SdpaEngines found = engines(shape, SdpaPass::backward, true);
            ASSERT_EQ(found.refusal(), "") << said;
            EXPECT_LE(found.engines().front().workspace_bytes, sdpa_engine_bytes(backward)) << said;
          }
        }
      }
    }
  }
}

TEST_P(CudnnAttentionOn, HasEnginesForSequencesThatNoTileDivides) {
  for (const std::int64_t sequence : {1, 7, 129}) {
    for (const std::int64_t head_dim : {8, 80}) {
      const AttentionShape shape = {2, sequence, 4, 1, head_dim, 3};
      EXPECT_EQ(engines(shape, SdpaPass::forward).refusal(), "") << sequence << " " << head_dim;
      EXPECT_EQ(engines(shape, SdpaPass::backward).refusal(), "") << sequence << " " << head_dim;
    }
  }
}

// All that cuDNN 9.19 refuses of heads up to our 256 wide.
TEST_P(CudnnAttentionOn, RefusesTheBackwardOfHeadsOver128WideButOnHopper) {
  if (library_->version() / 100 != 919) GTEST_SKIP() << "the table is that of cuDNN 9.19";
  for (const std::int64_t head_dim : {136, 160, 192, 256}) {
    const AttentionShape shape = {2, 1024, 8, 2, head_dim, 0};
    EXPECT_EQ(engines(shape, SdpaPass::forward).refusal(), "") << head_dim;
    EXPECT_EQ(engines(shape, SdpaPass::backward).refusal(),
              GetParam() == 90 ? "" : "cuDNN has no engine for it")
        << head_dim;
  }
}

// Without a driver a plan ends where its compiled program is loaded.
TEST_P(CudnnAttentionOn, CompilesTheBestEngine) {
  for (const SdpaPass pass : {SdpaPass::forward, SdpaPass::backward}) {
    const SdpaEngines found = engines({1, 1024, 32, 8, 128, 512}, pass);
    ASSERT_EQ(found.refusal(), "");
    try {
      const SdpaPlan plan(*library_, found, 0, nullptr);
      EXPECT_EQ(plan.workspace().bytes,
                sdpa_workspace(found.work(), found.engines()[0].workspace_bytes).bytes);
    } catch (const CudnnError& error) {
      EXPECT_EQ(error.status(), CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER) << error.what();
    }
  }
}

TEST_P(CudnnAttentionOn, TakesMemoryThatGrowsWithTheSquareOfTheSequenceWhenDeterministic) {
  const auto bytes = [&](std::int64_t sequence, bool deterministic) {
    const SdpaEngines found =
        engines({1, sequence, 12, 12, 64, 0}, SdpaPass::backward, deterministic);
    EXPECT_EQ(found.refusal(), "");
    return found.engines().empty() ? 0 : found.engines()[0].workspace_bytes;
  };
  // The scores' gradients of 12 heads in bf16, whole.
  for (const std::int64_t sequence : {1024, 4096}) {
    EXPECT_GE(bytes(sequence, true), 24 * sequence * sequence);
    EXPECT_LT(bytes(sequence, false), 24 * sequence * sequence);
  }
}

struct TrainedModel {
  const char* name;
  std::int64_t sequence;
  AttentionHeads heads;
  std::int64_t most;  // sequences of a micro-batch
};
constexpr TrainedModel kTrainedModels[] = {{"GPT-2 124M", 1024, {12, 12, 64}, 64},
                                           {"GPT-2 1.5B", 1024, {25, 25, 64}, 32},
                                           {"Llama-3.2-1B", 8192, {32, 8, 64}, 8},
                                           {"Llama-3.2-3B", 8192, {24, 8, 128}, 8}};

/// Bytes of cuDNN's first engine on sm_90 and the ledger's bound of them, "-" where our kernels
/// run.
std::string cells_of(const TrainedModel& model, std::int64_t batch, bool deterministic) {
  const AttentionHeads& heads = model.heads;
  const SdpaBackward backward = {batch, model.sequence, heads, 90, deterministic};
  if (!sdpa_backward_by_cudnn(backward)) return " - | - |";
  const AttentionShape shape = {batch,          model.sequence, heads.heads,
                                heads.kv_heads, heads.head_dim, 0};
  const SdpaEngines found(*described().library, {shape, SdpaPass::backward, deterministic},
                          {nullptr, properties(90)});
  if (found.engines().empty()) return " none | none |";
  EXPECT_LE(found.engines().front().workspace_bytes, sdpa_engine_bytes(backward))
      << model.name << " x " << batch;
  return fmt::format(" {} | {} |", found.engines().front().workspace_bytes,
                     sdpa_engine_bytes(backward));
}

// docs/measurements/cudnn_workspaces.md, of the models that the targets of one H100 are stated for.
TEST(CudnnWorkspaces, AreThoseOfThePage) {
  if (test::kSanitized) GTEST_SKIP() << "cuDNN leaks, and is not ours to mend";
  if (!described().library) GTEST_SKIP() << described().missing;
  std::string table;
  for (const TrainedModel& model : kTrainedModels) {
    for (std::int64_t batch = 1; batch <= model.most; batch *= 2) {
      const AttentionHeads& heads = model.heads;
      const AttentionShape shape = {batch,          model.sequence, heads.heads,
                                    heads.kv_heads, heads.head_dim, 0};
      const SdpaEngines forward(*described().library, {shape, SdpaPass::forward, false},
                                {nullptr, properties(90)});
      ASSERT_EQ(forward.refusal(), "") << model.name;
      table += fmt::format("| {} | {} | {} |", model.name, batch,
                           forward.engines().front().workspace_bytes);
      table += cells_of(model, batch, false) + cells_of(model, batch, true) + "\n";
    }
  }
  if (described().library->version() / 100 != 919) GTEST_SKIP() << "the page is of cuDNN 9.19";
  std::ifstream page("docs/measurements/cudnn_workspaces.md");
  const std::string text(std::istreambuf_iterator<char>(page), {});
  EXPECT_NE(text.find(table), std::string::npos) << "the page is to have\n" << table;
}

}  // namespace
}  // namespace shardwise::exec
