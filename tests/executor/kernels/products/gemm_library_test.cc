// Which kernels multiply: chosen from described processors, and then used by this one's products.
#include "executor/kernels/products/gemm_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "executor/kernels/products/gemm.h"
#include "executor/kernels/products/onednn.h"
#include "tests/executor/support/numbers.h"

namespace shardwise::exec {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Bits of cpuid's registers.
constexpr std::uint32_t kSse3 = 1U << 0;
constexpr std::uint32_t kSsse3 = 1U << 9;
constexpr std::uint32_t kFma = 1U << 12;
constexpr std::uint32_t kSse4 = 1U << 19 | 1U << 20;
constexpr std::uint32_t kAvx = 1U << 28;
constexpr std::uint32_t kAvx2 = 1U << 5;
constexpr std::uint32_t kAvx512 = 1U << 16 | 1U << 17 | 1U << 28 | 1U << 30 | 1U << 31;
constexpr std::uint32_t kBf16 = 1U << 5;
constexpr std::uint32_t kFp16 = 1U << 23;
constexpr std::uint32_t kTiles = 1U << 22 | 1U << 24;
constexpr std::uint64_t kSavesAll = 0x602e7;

/// Processors as they describe themselves, oldest first.
ProcessorRegisters described(std::string_view vendor, std::uint32_t leaf1, std::uint32_t leaf7 = 0,
                             std::uint32_t leaf7_edx = 0, std::uint32_t leaf7_1 = 0) {
  ProcessorRegisters r;
  std::ranges::copy(vendor, r.vendor.begin());
  r.leaf1_ecx = leaf1;
  r.leaf7_ebx = leaf7;
  r.leaf7_edx = leaf7_edx;
  r.leaf7_1_eax = leaf7_1;
  r.saved = kSavesAll;
  return r;
}
constexpr const char* kIntel = "GenuineIntel";
constexpr const char* kAmd = "AuthenticAMD";
constexpr std::uint32_t kNehalem = kSse3 | kSsse3 | kSse4;
constexpr std::uint32_t kHaswell = kNehalem | kAvx | kFma;

struct Described {
  const char* processor;
  ProcessorRegisters registers;
  const char* own;  // what OpenBLAS 0.3.21 chooses by the model
  const char* kernels;
  const char* unused;  // with them
};

const std::vector<Described>& processors() {
  static const std::vector<Described> all = {
      {"none", described(kIntel, 0), "Prescott", "", ""},
      {"Prescott", described(kIntel, kSse3), "Prescott", "Prescott", ""},
      {"Core 2", described(kIntel, kSse3 | kSsse3), "Core2", "Core2", ""},
      {"Nehalem", described(kIntel, kNehalem), "Nehalem", "Nehalem", ""},
      {"Sandy Bridge", described(kIntel, kNehalem | kAvx), "Sandybridge", "Sandybridge", ""},
      {"Haswell", described(kIntel, kHaswell, kAvx2), "Haswell", "Haswell", ""},
      {"Skylake-SP", described(kIntel, kHaswell, kAvx2 | kAvx512), "SkylakeX", "SkylakeX", ""},
      {"Cooper Lake", described(kIntel, kHaswell, kAvx2 | kAvx512, 0, kBf16), "Cooperlake",
       "Cooperlake", "AVX-512 BF16"},
      {"Sapphire Rapids", described(kIntel, kHaswell, kAvx2 | kAvx512, kFp16 | kTiles, kBf16),
       "Cooperlake", "Cooperlake", "AVX-512 BF16, AVX-512 FP16, AMX"},
      {"Emerald Rapids", described(kIntel, kHaswell, kAvx2 | kAvx512, kFp16 | kTiles, kBf16),
       "Prescott", "SkylakeX", "AVX-512 BF16, AVX-512 FP16, AMX"},
      {"Granite Rapids", described(kIntel, kHaswell, kAvx2 | kAvx512, kFp16 | kTiles, kBf16),
       "Cooperlake", "Cooperlake", "AVX-512 BF16, AVX-512 FP16, AMX"},
      {"Arrow Lake", described(kIntel, kHaswell, kAvx2), "Prescott", "Haswell", ""},
      {"Excavator", described(kAmd, kHaswell, kAvx2), "Excavator", "Excavator", ""},
      {"Zen 2", described(kAmd, kHaswell, kAvx2), "Zen", "Zen", ""},
      {"Zen 3", described(kAmd, kHaswell, kAvx2), "Zen", "Zen", ""},
      {"Zen 3 under an unknown model", described(kAmd, kHaswell, kAvx2), "Prescott", "Zen", ""},
      {"Zen 4", described(kAmd, kHaswell, kAvx2 | kAvx512, 0, kBf16), "Cooperlake", "Cooperlake",
       "AVX-512 BF16"},
      {"Zen 5", described(kAmd, kHaswell, kAvx2 | kAvx512, 0, kBf16), "Cooperlake", "Cooperlake",
       "AVX-512 BF16"},
      {"Zen 5 taken for Zen 1", described(kAmd, kHaswell, kAvx2 | kAvx512, 0, kBf16), "Zen",
       "SkylakeX", "AVX-512 BF16"},
      {"Hygon", described("HygonGenuine", kHaswell, kAvx2), "Zen", "Zen", ""},
      {"of a later library", described(kIntel, kHaswell, kAvx2 | kAvx512), "Diamondrapids",
       "Diamondrapids", ""},
  };
  return all;
}

TEST(WidestKernels, AreThoseThatTheFeaturesOfADescribedProcessorAllow) {
  for (const Described& each : processors()) {
    const Processor processor = processor_of(each.registers);
    EXPECT_EQ(widest_kernels(processor, each.own), each.kernels) << each.processor;
    EXPECT_FALSE(are_narrow(each.kernels, processor)) << each.processor;
    EXPECT_EQ(are_narrow(each.own, processor),
              std::string_view(each.own) != each.kernels && *each.kernels != '\0')
        << each.processor;
  }
}

// oneDNN is opened for those alone whose products of bf16 OpenBLAS cannot make.
TEST(Bf16Products, AreOfTheProcessorWhereADescribedOneHasInstructionsForThem) {
  for (const Described& each : processors()) {
    const bool expected = std::string_view(each.unused).starts_with("AVX-512 BF16");
    EXPECT_EQ(multiplies_bf16(processor_of(each.registers)), expected) << each.processor;
  }
}

TEST(Bf16Products, OfThisProcessorAreNamedOrWarnedOf) {
  const GemmLibrary& library = gemm_library();
  const Bf16Library& bf16 = bf16_library();
  if (bf16.used) {
    EXPECT_EQ(library.bf16, "oneDNN " + bf16.version);
    EXPECT_THAT(library.label(), HasSubstr(", of bf16 by oneDNN "));
    EXPECT_FALSE(library.unused.has(Feature::avx512_bf16));
    EXPECT_FALSE(library.unused.has(Feature::amx));
  } else if (multiplies_bf16(this_processor())) {
    EXPECT_THAT(library.warnings, Contains(bf16.warning));
    EXPECT_THAT(bf16.warning,
                StartsWith("warning: products of bf16 do not use this processor's AVX-512 BF16"));
  } else {
    EXPECT_THAT(library.bf16, IsEmpty());
    EXPECT_THAT(bf16.warning, IsEmpty());
  }
}

// The system saves no registers of AVX-512, or none of AVX: kernels that use them would be killed.
TEST(WidestKernels, NeedAnOperatingSystemThatSavesTheirRegisters) {
  ProcessorRegisters r = described(kIntel, kHaswell, kAvx2 | kAvx512, kFp16 | kTiles, kBf16);
  r.saved = 0x60007;
  EXPECT_EQ(widest_kernels(processor_of(r), "Prescott"), "Haswell");
  r.saved = 0x3;
  EXPECT_EQ(widest_kernels(processor_of(r), "Prescott"), "Nehalem");
  EXPECT_EQ(to_string(processor_of(r).features), "SSE3, SSSE3, SSE4.1, SSE4.2");
}

// Knights Landing has F and CD alone.
TEST(WidestKernels, OfAvx512NeedAllFiveParts) {
  const Processor landing = processor_of(described(kIntel, kHaswell, kAvx2 | 1U << 16 | 1U << 28));
  EXPECT_EQ(widest_kernels(landing, "Haswell"), "Haswell");
}

class Library : public testing::Test {
 protected:
  void SetUp() override {
    if (gemm_library().name != "OpenBLAS") GTEST_SKIP() << "Eigen's are those of the build";
    if (!use_kernels("Prescott")) GTEST_SKIP() << "this OpenBLAS was built for one processor";
  }
  void TearDown() override { choose_kernels(this_processor(), ""); }
};

/// A product through the library as it is now.
void expect_right_product() {
  const std::int64_t n = 65;
  const Floats a = random_floats(n * n, 1);
  const Floats b = random_floats(n * n, 2);
  Floats c(a.size());
  Workers workers(2);
  gemm<float, float, float>({n, n, n}, {a.data(), n}, {b.data(), n}, {c.data(), n}, false, workers);
  Doubles expected(c.size());
  for (std::size_t i = 0; i < c.size(); ++i) {
    const auto row = i / static_cast<std::size_t>(n);
    const auto column = i % static_cast<std::size_t>(n);
    for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) {
      expected[i] += static_cast<double>(a[row * static_cast<std::size_t>(n) + k]) *
                     static_cast<double>(b[k * static_cast<std::size_t>(n) + column]);
    }
  }
  expect_close(c, expected, kFp32Tolerance, "c");
}

// As if OpenBLAS did not know this processor: it fell back to Prescott's.
TEST_F(Library, MultipliesWithTheWidestKernelsThatThisProcessorRuns) {
  const Processor processor = this_processor();
  const GemmLibrary chosen = choose_kernels(processor, "");
  EXPECT_EQ(chosen.kernels, widest_kernels(processor, "Prescott"));
  EXPECT_FALSE(are_narrow(chosen.kernels, processor));
  EXPECT_THAT(chosen.warnings, IsEmpty());
  EXPECT_THAT(chosen.problem, IsEmpty());
  EXPECT_EQ(chosen.notes().size(), 1U);
  EXPECT_THAT(chosen.notes().front(),
              StartsWith("products by OpenBLAS " + chosen.version + " with " + chosen.kernels));
  expect_right_product();
}

TEST_F(Library, ChoosesForDescribedProcessorsThatThisOneContains) {
  const Features own = this_processor().features;
  for (const Described& each : processors()) {
    const Processor processor = processor_of(each.registers);
    if (!own.has(processor.features)) continue;
    ASSERT_TRUE(use_kernels("Prescott"));
    const GemmLibrary chosen = choose_kernels(processor, "");
    EXPECT_FALSE(are_narrow(chosen.kernels, processor)) << each.processor;
    EXPECT_EQ(to_string(chosen.unused), each.unused) << each.processor;
    expect_right_product();
  }
}

TEST_F(Library, FollowsTheUserAndWarnsOfNarrowKernels) {
  const Processor processor = this_processor();
  const GemmLibrary chosen = choose_kernels(processor, "prescott");
  EXPECT_EQ(chosen.kernels, "Prescott");
  EXPECT_THAT(chosen.problem, IsEmpty());
  if (widest_kernels(processor, "") == "Prescott") return;
  ASSERT_EQ(chosen.warnings.size(), 1U);
  EXPECT_THAT(chosen.warnings.front(),
              AllOf(StartsWith("warning: Prescott kernels do not use this processor's "),
                    HasSubstr(": unset OPENBLAS_CORETYPE")));
  EXPECT_EQ(chosen.notes().size(), 2U);
  expect_right_product();
}

TEST_F(Library, RefusesKernelsThatAreNotThereOrThatTheProcessorCannotRun) {
  const GemmLibrary unknown = choose_kernels(this_processor(), "Pentium");
  EXPECT_THAT(unknown.problem,
              AllOf(StartsWith("OPENBLAS_CORETYPE=Pentium: OpenBLAS " + unknown.version +
                               " has no such kernels; use one of "),
                    HasSubstr("Prescott"), HasSubstr(unknown.kernels)));
  const Processor haswell = processor_of(described(kIntel, kHaswell, kAvx2));
  const GemmLibrary wide = choose_kernels(haswell, "SkylakeX");
  EXPECT_THAT(wide.problem, StartsWith("OPENBLAS_CORETYPE=SkylakeX: this processor has no AVX-512; "
                                       "use one of Prescott, "));
  EXPECT_THAT(wide.problem, Not(HasSubstr("Cooperlake")));
}

TEST(NeededBy, KernelsOfAnyCaseAreFound) {
  EXPECT_TRUE(needed_by("skylakex").has(Feature::avx512));
  EXPECT_TRUE(needed_by("Bulldozer").has(Features(Feature::avx, Feature::fma4)));
  EXPECT_TRUE(needed_by("Pentium").empty());
}

}  // namespace
}  // namespace shardwise::exec
