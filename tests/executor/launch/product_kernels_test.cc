// What shardwise-run says of the kernels that multiply, and of a user's choice of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/kernels/products/gemm_library.h"
#include "executor/kernels/products/onednn.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::built;
using shardwise::test::Outcome;
using shardwise::test::run_program;
using shardwise::test::shardwise_run;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Outcome with_kernels(const std::string& kernels, std::vector<std::string> words) {
  words.insert(words.begin(), {"OPENBLAS_CORETYPE=" + kernels, built("shardwise-run")});
  return run_program("env", words);
}

/// What a report says of the products.
std::string products_of(const std::string& report) {
  const nlohmann::json read = nlohmann::json::parse(std::ifstream(report));
  for (const nlohmann::json& each : read["assumptions"]) {
    if (each["id"] == "kernels.products") return each["text"];
  }
  return "";
}

TEST(ProductKernels, AreNamedByVersionStartAndReport) {
  const std::string line = gemm_library().notes().front();
  EXPECT_THAT(shardwise_run({"--version"}).out, HasSubstr("\n" + line + "\n"));
  const Scratch scratch;
  const std::string report = scratch.path("report.json");
  const Outcome done = shardwise_run({scratch.write(tiny_plan("shardwise", 0, 1, 1)), "--data",
                                      kTrainingText, "--steps", "3", "--report", report});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\n" + line + "\n"));
  EXPECT_EQ(products_of(report), line);
}

TEST(ProductKernels, ThatAUserNamesAreUsedAndWarnedOfWhereOthersAreWider) {
  if (gemm_library().name != "OpenBLAS") GTEST_SKIP() << "Eigen's are those of the build";
  const Scratch scratch;
  const std::string report = scratch.path("report.json");
  const Outcome done =
      with_kernels("Prescott", {scratch.write(tiny_plan("shardwise", 0, 1, 1)), "--data",
                                kTrainingText, "--steps", "3", "--report", report});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr(" with Prescott kernels"));
  EXPECT_THAT(products_of(report), HasSubstr(" with Prescott kernels"));
  if (!are_narrow("Prescott", this_processor())) return;
  EXPECT_THAT(done.out, HasSubstr("\nwarning: Prescott kernels do not use this processor's "));
  EXPECT_THAT(products_of(report),
              HasSubstr("; warning: Prescott kernels do not use this processor's "));
}

TEST(ProductKernels, OfBf16AreThoseThatOneDnnMayUse) {
  if (!multiplies_bf16(this_processor())) GTEST_SKIP() << "no instructions for bf16";
  const Outcome done =
      run_program("env", {"ONEDNN_MAX_CPU_ISA=AVX512_CORE", built("shardwise-run"), "--version"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, Not(HasSubstr("of bf16 by oneDNN")));
  EXPECT_THAT(done.out,
              HasSubstr("\nwarning: products of bf16 do not use this processor's AVX-512 BF16"));
}

TEST(ProductKernels, ThatCannotBeUsedAreRefusedWithThoseThatCan) {
  if (gemm_library().name != "OpenBLAS") GTEST_SKIP() << "Eigen's are those of the build";
  const Scratch scratch;
  const std::string plan = scratch.write(tiny_plan("shardwise", 0, 1, 1));
  const auto refused = [&](const std::string& kernels) {
    const Outcome done = with_kernels(kernels, {plan, "--steps", "1"});
    EXPECT_EQ(done.exit_code, 2) << kernels;
    EXPECT_THAT(done.out, IsEmpty());
    EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
    return done.err;
  };
  EXPECT_THAT(
      refused("Pentium"),
      AllOf(StartsWith("shardwise-run: OPENBLAS_CORETYPE=Pentium: OpenBLAS "),
            HasSubstr(" has no such kernels; use one of "), HasSubstr(gemm_library().kernels)));
  if (this_processor().features.has(Feature::fma4)) return;
  EXPECT_THAT(refused("Bulldozer"),
              StartsWith("shardwise-run: OPENBLAS_CORETYPE=Bulldozer: this processor has no FMA4"));
}

}  // namespace
}  // namespace shardwise::exec::test
