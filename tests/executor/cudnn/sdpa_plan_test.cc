// Graphs and plans on a cuDNN with nothing behind it: what it is told, and what happens when it
// refuses.
#include "executor/kernels/cudnn/sdpa_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <vector>

#include "executor/kernels/cudnn/cudnn_library.h"
#include "tests/executor/cudnn/fake_cudnn.h"

namespace shardwise::exec {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr AttentionShape kGrouped = {2, 96, 6, 2, 64, 32};

SdpaWork work_of(SdpaPass pass, bool deterministic = false) {
  return {kGrouped, pass, deterministic};
}

SdpaOperands operands() {
  // Stands for memory of a device: nobody reads it.
  alignas(256) static std::array<std::array<std::byte, 1U << 21U>, 6> memory;
  return {memory[0].data(), memory[1].data(), reinterpret_cast<float*>(memory[2].data()),
          memory[3].data(), memory[4].data(), memory[5].data()};
}

void run(const CudnnLibrary& library, const SdpaWork& work) {
  const SdpaEngines engines(library, work, {nullptr, "{}"});
  const SdpaPlan plan(library, engines, 0, nullptr);
  plan.run(operands(), nullptr);
}

std::int64_t id(SdpaTensor tensor) { return static_cast<std::int64_t>(tensor); }

class SdpaPlanOf : public testing::TestWithParam<SdpaWork> {};

INSTANTIATE_TEST_SUITE_P(Passes, SdpaPlanOf,
                         testing::Values(work_of(SdpaPass::forward), work_of(SdpaPass::backward),
                                         work_of(SdpaPass::backward, true),
                                         SdpaWork{{1, 64, 4, 4, 64, 0}, SdpaPass::forward, false},
                                         SdpaWork{{1, 64, 4, 4, 64, 0}, SdpaPass::backward, false},
                                         SdpaWork{{1, 64, 4, 4, 64, 64}, SdpaPass::backward}));

TEST_P(SdpaPlanOf, GivesMemoryToAllTensorsInMemoryAndToNoOthers) {
  const FakeCudnn fake;
  const CudnnLibrary library(FakeCudnn::calls(), "a fake");
  const SdpaEngines engines(library, GetParam(), {nullptr, "{}"});
  std::set<std::int64_t> in_memory;
  for (const auto& [handle, object] : fake.objects) {
    if (object.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
    if (object.values<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL).at(0)) continue;
    in_memory.insert(object.values<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID).at(0));
  }
  const SdpaPlan plan(library, engines, 0, nullptr);
  plan.run(operands(), nullptr);
  std::set<std::int64_t> given;
  for (const auto& [tensor, place] : fake.places) given.insert(tensor);
  EXPECT_EQ(given, in_memory);
}

TEST_P(SdpaPlanOf, TouchesNothingOutsideTheMemoryItIsGiven) {
  const FakeCudnn fake;
  const CudnnLibrary library(FakeCudnn::calls(), "a fake");
  const SdpaEngines engines(library, GetParam(), {nullptr, "{}"});
  // The last element's end of each tensor by its dimensions and strides, in bytes.
  std::map<std::int64_t, std::int64_t> reach;
  for (const auto& [handle, object] : fake.objects) {
    if (object.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
    const auto dimensions = object.values<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const auto strides = object.values<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    std::int64_t last = 1;
    for (std::size_t i = 0; i < 4; ++i) last += (dimensions[i] - 1) * strides[i];
    const auto type = object.values<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE).at(0);
    reach[object.values<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID).at(0)] =
        last * (type == CUDNN_DATA_BFLOAT16 ? 2 : 4);
  }
  const SdpaPlan plan(library, engines, 0, nullptr);
  const SdpaOperands given = operands();
  plan.run(given, nullptr);

  const AttentionShape& s = GetParam().shape;
  const auto ends_within = [&](SdpaTensor tensor, const void* begin, std::int64_t bytes) {
    const auto* const at = static_cast<const std::byte*>(fake.places.at(id(tensor)));
    EXPECT_GE(at, begin) << id(tensor);
    EXPECT_LE(at + reach.at(id(tensor)), static_cast<const std::byte*>(begin) + bytes)
        << id(tensor);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 16, 0U) << id(tensor);
  };
  const std::int64_t qkv = s.batch * s.sequence * s.qkv_width() * 2;
  const std::int64_t out = s.batch * s.sequence * s.heads * s.head_dim * 2;
  for (const SdpaTensor part : {SdpaTensor::queries, SdpaTensor::keys, SdpaTensor::values}) {
    ends_within(part, given.qkv, qkv);
  }
  ends_within(SdpaTensor::out, given.out, out);
  ends_within(SdpaTensor::log_sums, given.log_sums, s.batch * s.heads * s.sequence * 4);
  if (GetParam().pass == SdpaPass::forward) return;
  ends_within(SdpaTensor::d_out, given.d_out, out);
  const SdpaWorkspace& w = plan.workspace();
  for (const SdpaTensor part : {SdpaTensor::d_queries, SdpaTensor::d_keys, SdpaTensor::d_values}) {
    ends_within(part, given.workspace + w.d_qkv, w.engine - w.d_qkv);
  }
  const std::int64_t rows = s.batch * s.heads * s.sequence;
  const std::int64_t queries = rows * s.head_dim * 4;
  ends_within(SdpaTensor::row_sums, given.sums + queries, rows * 4);
  if (!GetParam().deterministic) ends_within(SdpaTensor::d_queries_sum, given.sums, queries);
  EXPECT_EQ(fake.workspace, given.workspace + w.engine);
  EXPECT_GE(w.bytes - w.engine, FakeCudnn::kEngineBytes);
}

TEST(SdpaPlan, FindsKeysAndValuesBehindTheQueriesOfAToken) {
  const FakeCudnn fake;
  run(CudnnLibrary(FakeCudnn::calls(), "a fake"), work_of(SdpaPass::backward));
  // 6 heads of 64 bf16 are 768 bytes; 2 key heads are 256.
  const std::byte* const qkv = operands().qkv;
  EXPECT_EQ(fake.places.at(id(SdpaTensor::queries)), qkv);
  EXPECT_EQ(fake.places.at(id(SdpaTensor::keys)), qkv + 768);
  EXPECT_EQ(fake.places.at(id(SdpaTensor::values)), qkv + 1024);
  EXPECT_EQ(fake.places.at(id(SdpaTensor::d_keys)),
            static_cast<std::byte*>(fake.places.at(id(SdpaTensor::d_queries))) + 768);
}

TEST(SdpaPlan, ScalesByTheRootOfHeadDimAndSeesTheWindow) {
  const FakeCudnn fake;
  run(CudnnLibrary(FakeCudnn::calls(), "a fake"), work_of(SdpaPass::forward));
  EXPECT_EQ(fake.numbers.at(id(SdpaTensor::scale)), 0.125F);
  EXPECT_EQ(fake.numbers.at(id(SdpaTensor::window)), 32.0F);
}

TEST(SdpaWorkspace, IsGradientsAndTheEnginesOwn) {
  // 2 x 96 tokens of 10 heads of 64 in bf16.
  const SdpaWorkspace w = sdpa_workspace(work_of(SdpaPass::backward), 1);
  EXPECT_EQ(w.engine, 2 * 96 * 10 * 64 * 2);
  EXPECT_EQ(w.bytes - w.engine, 256);
  EXPECT_EQ(sdpa_workspace(work_of(SdpaPass::forward), 0).bytes, 0);
}

TEST_P(SdpaPlanOf, EveryCallThatFailsIsOneLineAndLeavesNoObject) {
  FakeCudnn fake;
  const CudnnLibrary library(FakeCudnn::calls(), "a fake");
  run(library, GetParam());
  const std::int64_t calls = fake.called;
  ASSERT_GT(calls, 100);
  for (std::int64_t n = 0; n < calls; ++n) {
    fake.fail(n, CUDNN_STATUS_BAD_PARAM);
    try {
      run(library, GetParam());
      ADD_FAILURE() << "call " << n << " failed and nobody said so";
    } catch (const CudnnError& error) {
      const std::string text = error.what();
      EXPECT_THAT(text, StartsWith("cudnnBackend")) << n;
      EXPECT_THAT(text, HasSubstr(": CUDNN_STATUS_BAD_PARAM (2000): the first reason the second"));
      EXPECT_EQ(text.find('\n'), std::string::npos);
      EXPECT_EQ(error.status(), CUDNN_STATUS_BAD_PARAM);
    }
    EXPECT_TRUE(fake.objects.empty()) << n;
    ASSERT_EQ(fake.created, fake.destroyed) << n;
  }
}

TEST(SdpaEngines, TakesNotSupportedForARefusalWithItsReason) {
  FakeCudnn fake;
  const CudnnLibrary library(FakeCudnn::calls(), "a fake");
  fake.fail(20, CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  const SdpaEngines engines(library, work_of(SdpaPass::forward), {nullptr, "{}"});
  EXPECT_TRUE(engines.engines().empty());
  EXPECT_THAT(engines.refusal(), HasSubstr("the first reason"));
}

TEST(SdpaEngines, SaysWhichEngineAndWhatMemoryItNeedsWithoutAPlan) {
  const FakeCudnn fake;
  const CudnnLibrary library(FakeCudnn::calls(), "a fake");
  const SdpaEngines engines(library, work_of(SdpaPass::forward), {nullptr, "{}"});
  ASSERT_EQ(engines.engines().size(), 1U);
  EXPECT_EQ(engines.engines()[0].index, FakeCudnn::kEngine);
  EXPECT_EQ(engines.engines()[0].workspace_bytes, FakeCudnn::kEngineBytes);
}

TEST(SdpaEngines, AreThoseOfTheHeuristicsAndBehindThemTheFallbacks) {
  FakeCudnn fake;
  fake.engines = 2;
  fake.fallback_engines = 3;
  const CudnnLibrary library(FakeCudnn::calls(), "a fake");
  EXPECT_EQ(SdpaEngines(library, work_of(SdpaPass::forward), {nullptr, "{}"}).engines().size(), 5U);
  fake.engines = 0;
  EXPECT_EQ(SdpaEngines(library, work_of(SdpaPass::forward), {nullptr, "{}"}).engines().size(), 3U);
  fake.fallback_engines = 0;
  EXPECT_EQ(SdpaEngines(library, work_of(SdpaPass::forward), {nullptr, "{}"}).refusal(),
            "cuDNN has no engine for it");
}

TEST(SdpaUnsupported, SaysWhyOurOwnKernelTakesIt) {
  EXPECT_EQ(sdpa_unsupported(kGrouped, DType::bf16), std::nullopt);
  EXPECT_EQ(sdpa_unsupported(kGrouped, DType::fp32),
            "cuDNN's attention is used in bf16 only, not fp32");
  EXPECT_EQ(sdpa_unsupported({1, 8, 1, 1, 12, 0}, DType::bf16),
            "cuDNN's attention needs a head_dim that 8 divides, not 12");
}

TEST(CudnnLibrary, NamesWhereItLookedWhenThereIsNone) {
  try {
    CudnnLibrary::open({"/nowhere/a", "/nowhere/b"});
    FAIL();
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(),
                 "no libcudnn.so.9 on this machine (pip install nvidia-cudnn-cu13, or name its "
                 "folder by --libraries); looked in /nowhere/a, /nowhere/b");
  }
}

TEST(CudnnLibrary, RefusesAnOldVersionByBothNumbers) {
  FakeCudnn fake;
  fake.version = 91002;
  try {
    const CudnnLibrary library(FakeCudnn::calls(), "/opt/libcudnn.so.9");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(),
                 "cuDNN 9.10.2 (/opt/libcudnn.so.9) is too old; 9.15.1 or later is needed");
  }
}

}  // namespace
}  // namespace shardwise::exec
