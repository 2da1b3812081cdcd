// Plans: which algorithm is taken, what is refused, what is kept.
#include <gmock/gmock.h>

#include "tests/executor/cuda/linear_on_fake.h"
#include "tests/support/scratch.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::bytes_of_file;
using shardwise::test::Scratch;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kIn = 24;
constexpr std::int64_t kOut = 16;

/// A clock by which one algorithm is the fastest.
class SaidClock final : public GemmClock {
 public:
  explicit SaidClock(int fastest) : fastest_(fastest) {}
  void fill(std::span<std::byte> memory, DType /*dtype*/) override {
    std::fill(memory.begin(), memory.end(), std::byte{0});
  }
  double seconds(const std::function<void()>& issue) override {
    issue();
    ++timed;
    return fake_cublaslt::ran().back().algorithm == fastest_ ? 1e-6 : 2e-6;
  }
  int timed = 0;

 private:
  int fastest_;
};

class GemmPlansOnFake : public LinearOnFake {
 protected:
  ProductCall call() {
    return product_of(LinearWork{.shape = {kRows, kIn, kOut, kIn, kOut, false},
                                 .dtype = DType::bf16,
                                 .x = x_.at(),
                                 .weight = weight_.at(),
                                 .bias = bias_.at(),
                                 .y = y_.at(),
                                 .adds = true,
                                 .gelu = std::nullopt},
                      false, false);
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

  Tensor x_{DType::bf16, random_floats(kRows* kIn + 8, 1)};
  Tensor weight_{DType::bf16, random_floats(kIn* kOut, 2)};
  Tensor bias_{DType::bf16, random_floats(kOut, 3)};
  Tensor y_{DType::bf16, random_floats(kRows* kOut, 4)};
  std::vector<std::byte> scratch_ = std::vector<std::byte>(1 << 16);
};

TEST_F(GemmPlansOnFake, TheFirstAlgorithmWithOneOrderOfSumsRunsWhereNoneWasTimed) {
  GemmPlans plans(*library_, options_);
  plans.run(call(), workspace_, nullptr);
  ASSERT_EQ(fake_cublaslt::ran().size(), 1U);
  EXPECT_EQ(fake_cublaslt::ran().front().algorithm, fake_cublaslt::kPlain);
}

TEST_F(GemmPlansOnFake, TheFastestIsTakenOnceAndKeptForLaterRuns) {
  const Scratch folder;
  const std::string path = folder.path("plans.json");
  {
    GemmPlans plans(*library_, options_);
    SaidClock clock(fake_cublaslt::kSplit);
    EXPECT_TRUE(plans.tune(call().product, scratch_, workspace_, nullptr, clock));
    EXPECT_EQ(clock.timed, 2);
    EXPECT_TRUE(plans.tune(call().product, scratch_, workspace_, nullptr, clock));
    EXPECT_EQ(clock.timed, 2);
    write_gemm_plans(path, plans.machine(), plans.choices());
  }
  GemmPlans plans(*library_, options_);
  const ReadGemmPlans read = read_gemm_plans(path, plans.machine());
  EXPECT_EQ(read.ignored, "");
  plans.take(read.choices);
  plans.run(call(), workspace_, nullptr);
  EXPECT_EQ(fake_cublaslt::ran().back().algorithm, fake_cublaslt::kSplit);
  EXPECT_EQ(plans.choices(), read.choices);
}

TEST_F(GemmPlansOnFake, NothingIsTimedWhereOperandsHaveNoRoom) {
  GemmPlans plans(*library_, options_);
  SaidClock clock(fake_cublaslt::kSplit);
  const auto bytes = static_cast<std::size_t>(GemmPlans::operand_bytes(call().product));
  EXPECT_FALSE(
      plans.tune(call().product, std::span(scratch_).first(bytes - 1), workspace_, nullptr, clock));
  EXPECT_EQ(clock.timed, 0);
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
  wrong.product.b_stride = kIn - 8;
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

TEST(GemmPlanFile, OfAnotherMachineOrDamagedIsIgnoredWithOneLine) {
  const Scratch folder;
  const GemmMachine machine = {"a GPU", 130100};
  const std::string path = folder.path("plans.json");
  EXPECT_EQ(read_gemm_plans(path, machine).ignored, "");
  GemmChoice choice;
  choice.algorithm = {1, 2, 3, ~std::uint64_t{0}, 5, 6, 7, 8};
  choice.workspace_bytes = 4096;
  choice.microseconds = 12.5;
  const GemmChoices choices = {{"one", choice}, {"two", {}}};
  write_gemm_plans(path, machine, choices);
  EXPECT_EQ(read_gemm_plans(path, machine).choices, choices);
  EXPECT_THAT(read_gemm_plans(path, {"another\nGPU", 130100}).ignored, HasSubstr("a GPU"));
  EXPECT_THAT(read_gemm_plans(path, {"a GPU", 130200}).ignored, HasSubstr("130100"));

  const std::string good = bytes_of_file(path);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() / 2), replaced("plans/1", "plans/2"),
        replaced("0000000000000001", "000000000000000g"), replaced("0000000000000001", "1"),
        replaced("\"one\"", "\"two\""), replaced("4096", "-1"), replaced("4096", "1e300"),
        replaced("\"one\"", "\"" + std::string(300, 'x') + "\""), replaced("12.5", "\"soon\""),
        replaced("\"gpu\"", "\"cpu\""), std::string(5'000'000, ' ')}) {
    const ReadGemmPlans read = read_gemm_plans(folder.write_bytes("bad.json", bad), machine);
    EXPECT_TRUE(read.choices.empty()) << bad.substr(0, 200);
    EXPECT_THAT(read.ignored, HasSubstr("GEMM plans are ignored: ")) << bad.substr(0, 200);
    EXPECT_THAT(read.ignored, Not(HasSubstr("\n")));
  }
}

TEST(CublasLtLibrary, SaysWhereItLookedWhenThereIsNone) {
  const Scratch folder;
  try {
    CublasLtLibrary::open({folder.folder().string()});
    FAIL();
  } catch (const CublasLtError& error) {
    EXPECT_EQ(std::string(error.what()),
              "no cuBLASLt (libcublasLt.so.13, libcublasLt.so.12) on this machine; "
              "looked in " +
                  folder.folder().string());
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
