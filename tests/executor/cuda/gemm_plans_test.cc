// Plans: which algorithm is taken, what is refused, what is kept.
#include <gmock/gmock.h>

#include <array>

#include "tests/executor/cuda/linear_on_fake.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Scratch;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kPlanRows = 5;
constexpr std::int64_t kPlanIn = 24;
constexpr std::int64_t kPlanOut = 16;

/// A clock by which one algorithm is the fastest.
class SaidClock final : public KernelClock {
 public:
  explicit SaidClock(int fastest) : fastest_(fastest) {}
  cudaStream_t stream() const override { return nullptr; }
  void fill(std::span<std::byte> memory, DType /*dtype*/) override {
    filled += std::ssize(memory);
    std::fill(memory.begin(), memory.end(), std::byte{0});
  }
  double seconds(const std::function<void()>& issue) override {
    issue();
    ++timed;
    return fake_cublaslt::ran().back().algorithm == fastest_ ? 1e-6 : 2e-6;
  }
  int timed = 0;
  std::int64_t filled = 0;  // bytes

 private:
  int fastest_;
};

class GemmPlansOnFake : public LinearOnFake {
 protected:
  ProductCall call() {
    return product_of(LinearWork{.shape = {kPlanRows, kPlanIn, kPlanOut, kPlanIn, kPlanOut, false},
                                 .dtype = DType::bf16,
                                 .x = x_.at(),
                                 .weight = weight_.at(),
                                 .bias = bias_.at(),
                                 .y = y_.at(),
                                 .adds = true,
                                 .gelu = std::nullopt},
                      false, false);
  }
  KernelTuning tuning_by(KernelClock& clock) {
    const auto bytes = static_cast<std::size_t>(options_.workspace_bytes);
    return {.clock = clock, .workspace = {workspace_, bytes}};
  }
  /// Runs the call and gives the line of its error; empty for none.
  std::string failure_of(const ProductCall& wrong) {
    try {
      GemmPlans plans(*library_, options_);
      plans.run(wrong, workspace_, nullptr);
    } catch (const CublasLtError& error) {
      return error.what();
    }
    return "";
  }
  /// The complaint that was expected, which is forgotten.
  void expect_complaint(const std::string& text) {
    EXPECT_THAT(fake_cublaslt::complaints(), ElementsAre(HasSubstr(text)));
    EXPECT_EQ(fake_cublaslt::left_over(), "");
    fake_cublaslt::reset();
  }

  Tensor x_{DType::bf16, random_floats(kPlanRows* kPlanIn + 8, 1)};
  Tensor weight_{DType::bf16, random_floats(kPlanIn* kPlanOut, 2)};
  Tensor bias_{DType::bf16, random_floats(kPlanOut, 3)};
  Tensor y_{DType::bf16, random_floats(kPlanRows* kPlanOut, 4)};
};

TEST_F(GemmPlansOnFake, TheFirstAlgorithmWithOneOrderOfSumsRunsWhereNoneWasTimed) {
  GemmPlans plans(*library_, options_);
  plans.run(call(), workspace_, nullptr);
  ASSERT_EQ(fake_cublaslt::ran().size(), 1U);
  EXPECT_EQ(fake_cublaslt::ran().front().algorithm, fake_cublaslt::kPlain);
}

TEST_F(GemmPlansOnFake, TheFastestIsTakenOnceAndKeptForLaterRuns) {
  GemmChoices kept;
  {
    GemmPlans plans(*library_, options_);
    SaidClock clock(fake_cublaslt::kSplit);
    KernelTuning tuning = tuning_by(clock);
    plans.tune(call(), tuning);
    plans.tune(call(), tuning);
    EXPECT_EQ(clock.timed, 2);
    EXPECT_THAT(tuning.timed, ElementsAre(to_string(call().product)));
    EXPECT_THAT(tuning.kept, IsEmpty());
    kept = plans.choices();
  }
  GemmPlans plans(*library_, options_);
  plans.take(kept);
  SaidClock clock(fake_cublaslt::kPlain);
  KernelTuning tuning = tuning_by(clock);
  plans.tune(call(), tuning);
  EXPECT_EQ(clock.timed, 0);
  EXPECT_THAT(tuning.kept, ElementsAre(to_string(call().product)));
  plans.run(call(), workspace_, nullptr);
  EXPECT_EQ(fake_cublaslt::ran().back().algorithm, fake_cublaslt::kSplit);
  EXPECT_EQ(plans.choices(), kept);
}

TEST_F(GemmPlansOnFake, OperandsAreRandomToTheirLastElementAndNothingElseIs) {
  GemmPlans plans(*library_, options_);
  SaidClock clock(fake_cublaslt::kPlain);
  KernelTuning tuning = tuning_by(clock);
  plans.tune(call(), tuning);
  EXPECT_EQ(clock.filled,
            2 * (kPlanIn * kPlanOut + kPlanRows * kPlanIn + kPlanRows * kPlanOut + kPlanOut));
}

TEST_F(GemmPlansOnFake, AnAlgorithmThatIsRefusedWhenItRunsIsLeftOut) {
  GemmPlans plans(*library_, options_);
  fake_cublaslt::fail("cublasLtMatmul", 0, CUBLAS_STATUS_NOT_SUPPORTED);
  SaidClock clock(fake_cublaslt::kPlain);
  KernelTuning tuning = tuning_by(clock);
  plans.tune(call(), tuning);
  EXPECT_EQ(clock.timed, 1);
  plans.run(call(), workspace_, nullptr);
  EXPECT_EQ(fake_cublaslt::ran().back().algorithm, fake_cublaslt::kSplit);
}

// Statuses that a call of cuBLASLt may give for what it lists and cannot do.
constexpr std::array kFailures = {CUBLAS_STATUS_NOT_SUPPORTED,  CUBLAS_STATUS_INVALID_VALUE,
                                  CUBLAS_STATUS_INTERNAL_ERROR, CUBLAS_STATUS_EXECUTION_FAILED,
                                  CUBLAS_STATUS_ARCH_MISMATCH,  CUBLAS_STATUS_ALLOC_FAILED};

TEST_F(GemmPlansOnFake, AnAlgorithmThatFailsInAnyWayIsLeftOutWithALine) {
  for (const cublasStatus_t status : kFailures) {
    fake_cublaslt::reset();
    fake_cublaslt::refuse_algorithm(fake_cublaslt::kPlain, status);
    GemmPlans plans(*library_, options_);
    SaidClock clock(fake_cublaslt::kPlain);
    KernelTuning tuning = tuning_by(clock);
    plans.tune(call(), tuning);
    EXPECT_THAT(tuning.dropped, ElementsAre(HasSubstr(to_string(call().product) +
                                                      ": rank 3: cublasLtMatmul: CUBLAS_STATUS_")));
    plans.run(call(), workspace_, nullptr);
    EXPECT_EQ(fake_cublaslt::ran().back().algorithm, fake_cublaslt::kSplit);
  }
}

TEST_F(GemmPlansOnFake, AProductOfWhichEveryAlgorithmFailsNamesTheFailure) {
  for (const int algorithm : {fake_cublaslt::kPlain, fake_cublaslt::kSplit}) {
    fake_cublaslt::refuse_algorithm(algorithm, CUBLAS_STATUS_EXECUTION_FAILED);
  }
  GemmPlans plans(*library_, options_);
  SaidClock clock(fake_cublaslt::kPlain);
  KernelTuning tuning = tuning_by(clock);
  plans.tune(call(), tuning);
  EXPECT_FALSE(plans.supports(call().product));
  EXPECT_THAT([&] { plans.run(call(), workspace_, nullptr); },
              testing::ThrowsMessage<CublasLtError>(HasSubstr("CUBLAS_STATUS_EXECUTION_FAILED")));
}

TEST_F(GemmPlansOnFake, AnEpilogueThatFailsInAnyWayIsNotThereAndAPlainProductThatFailsIs) {
  for (const cublasStatus_t status : kFailures) {
    fake_cublaslt::reset();
    fake_cublaslt::refuse(CUBLASLT_EPILOGUE_BIAS, status);
    fake_cublaslt::refuse(CUBLASLT_EPILOGUE_DEFAULT, status);
    GemmPlans plans(*library_, options_);
    EXPECT_FALSE(plans.supports(call().product));
    Product plain = call().product;
    plain.epilogue = Epilogue::none;
    plain.vector_alignment = 0;
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
      EXPECT_FALSE(plans.supports(plain));
    } else {
      EXPECT_THROW(plans.supports(plain), CublasLtError);
    }
  }
}

TEST_F(GemmPlansOnFake, AnAlgorithmOfWhichNothingIsSaidIsNotTaken) {
  fake_cublaslt::fail("cublasLtMatmulAlgoConfigGetAttribute", 2, CUBLAS_STATUS_INVALID_VALUE);
  GemmPlans plans(*library_, options_);
  plans.run(call(), workspace_, nullptr);
  EXPECT_EQ(fake_cublaslt::ran().back().algorithm, fake_cublaslt::kSplit);
}

TEST_F(GemmPlansOnFake, OperandsOneAfterTheOtherAreAlignedAndDoNotOverlap) {
  const Product product = call().product;
  const ProductCall laid = GemmPlans::laid_out(product, workspace_);
  EXPECT_EQ(laid.a, workspace_);
  EXPECT_EQ(laid.b - laid.a, 2 * kPlanIn * kPlanOut);
  EXPECT_EQ(laid.d - laid.b, 256);
  EXPECT_EQ(laid.vector - laid.d, 256);
  EXPECT_EQ(laid.aux, nullptr);
  EXPECT_EQ(GemmPlans::operand_bytes(product), 2 * kPlanIn * kPlanOut + 3 * 256);
}

TEST_F(GemmPlansOnFake, AKeptAlgorithmThatCublasLtRefusesIsChosenAnew) {
  GemmPlans plans(*library_, options_);
  GemmChoice damaged;
  damaged.algorithm.fill(7);
  damaged.microseconds = 1;
  plans.take({{to_string(call().product), damaged}});
  plans.run(call(), workspace_, nullptr);
  EXPECT_EQ(fake_cublaslt::ran().back().algorithm, fake_cublaslt::kPlain);
  EXPECT_EQ(plans.choices().at(to_string(call().product)).microseconds, 0);
}

TEST_F(GemmPlansOnFake, APointerThatIsNotAlignedAsPlannedIsRefused) {
  ProductCall wrong = call();
  wrong.b += 2;
  EXPECT_EQ(failure_of(wrong), "rank 3: cublasLtMatmul: CUBLAS_STATUS_INVALID_VALUE (7)");
  expect_complaint("not aligned");
}

TEST_F(GemmPlansOnFake, AWrongLeadingDimensionIsRefused) {
  ProductCall wrong = call();
  wrong.product.b_stride = kPlanIn - 8;
  EXPECT_EQ(failure_of(wrong),
            "rank 3: cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_INVALID_VALUE (7)");
  expect_complaint("leading dimension");
}

TEST_F(GemmPlansOnFake, AWrongTranspositionIsRefusedByItsLeadingDimension) {
  ProductCall wrong = call();
  wrong.product.a_transposed = false;
  wrong.product.a_stride = 8;
  EXPECT_NE(failure_of(wrong), "");
  expect_complaint("leading dimension");
}

TEST_F(GemmPlansOnFake, AMissingBetaChangesTheResult) {
  GemmPlans plans(*library_, options_);
  const Floats before = y_.values();
  plans.run(call(), workspace_, nullptr);
  const Floats added = y_.values();
  ProductCall sets = call();
  sets.product.adds = false;
  plans.run(sets, workspace_, nullptr);
  const Floats set = y_.values();
  for (std::size_t i = 0; i < set.size(); ++i) {
    EXPECT_NEAR(added[i], before[i] + set[i], (std::abs(set[i]) + std::abs(added[i])) / 128);
  }
  EXPECT_NE(added, set);
}

TEST_F(GemmPlansOnFake, EveryCallThatFailsOnceIsNamedInOneLineAndLeavesNothing) {
  for (const std::string& name : fake_cublaslt::names()) {
    if (name.ends_with("Destroy")) continue;  // at the end, when nobody is told
    if (name == "cublasLtMatmulAlgoConfigGetAttribute") continue;  // another algorithm is taken
    fake_cublaslt::fail(name, 0, CUBLAS_STATUS_INTERNAL_ERROR);
    EXPECT_EQ(failure_of(call()), "rank 3: " + name + ": CUBLAS_STATUS_INTERNAL_ERROR (14)");
    EXPECT_EQ(fake_cublaslt::left_over(), "") << name;
    EXPECT_EQ(failure_of(call()), "") << name;
  }
}

TEST_F(GemmPlansOnFake, AFailureWhileTheDescriptorIsFilledLeavesNothing) {
  for (int nth = 0; nth < 8; ++nth) {
    fake_cublaslt::fail(nth < 3 ? "cublasLtMatrixLayoutCreate" : "cublasLtMatmulDescSetAttribute",
                        nth < 3 ? nth : nth - 3, CUBLAS_STATUS_ALLOC_FAILED);
    EXPECT_THAT(failure_of(call()), HasSubstr("CUBLAS_STATUS_ALLOC_FAILED (3)")) << nth;
    EXPECT_EQ(fake_cublaslt::left_over(), "") << nth;
  }
}

TEST_F(GemmPlansOnFake, AProductWithoutAnyAlgorithmIsNamed) {
  fake_cublaslt::refuse(CUBLASLT_EPILOGUE_BIAS);
  EXPECT_THAT(failure_of(call()), HasSubstr("rank 3: cublasLtMatmulAlgoGetHeuristic: no algorithm "
                                            "for bf16 tn 16x5x24 strides 24,24,16,0 adds bias"));
}

TEST(CublasLtLibrary, SaysWhereItLookedWhenThereIsNone) {
  const Scratch folder;
  try {
    CublasLtLibrary::open({folder.folder().string()});
    FAIL();
  } catch (const CublasLtError& error) {
    EXPECT_EQ(std::string(error.what()),
              "no libcublasLt.so.13 or libcublasLt.so.12 on this machine (pip install "
              "nvidia-cublas, or name its folder by --libraries); looked in " +
                  folder.folder().string());
  }
}

// One of a later major version than the runtime's needs a later driver than the runtime does.
TEST(CublasLtLibrary, IsOfTheRuntimesOwnMajorVersionWhereThereIsOne) {
  EXPECT_THAT(CublasLtLibrary::names(12080),
              testing::ElementsAre("libcublasLt.so.12", "libcublasLt.so.13"));
  EXPECT_THAT(CublasLtLibrary::names(13000),
              testing::ElementsAre("libcublasLt.so.13", "libcublasLt.so.12"));
  const Scratch later;  // has the runtime's version in the second folder only
  const Scratch own;
  later.write_bytes("libcublasLt.so.13", "no library");
  own.write_bytes("libcublasLt.so.12", "no library");
  try {
    CublasLtLibrary::open({later.folder().string(), own.folder().string()}, 12080);
    FAIL();
  } catch (const CublasLtError& error) {
    EXPECT_THAT(error.what(), testing::ContainsRegex("so.12: file too short.*so.13: file too"));
  }
}

TEST(CublasLtLibrary, SaysWhyAFileThatIsThereDoesNotLoad) {
  const Scratch folder;
  folder.write_bytes("libcublasLt.so.12", "no library");
  try {
    CublasLtLibrary::open({folder.folder().string()});
    FAIL();
  } catch (const CublasLtError& error) {
    EXPECT_THAT(error.what(), HasSubstr("libcublasLt.so.12: file too short"));
  }
}

}  // namespace
}  // namespace shardwise::exec::test
