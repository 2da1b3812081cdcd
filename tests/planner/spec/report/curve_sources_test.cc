#include "planner/spec/report/curve_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/json/catalogue.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/gpu_reader.h"

namespace shardwise {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ClusterSpec of(const char* name, std::int64_t gpus) {
  ClusterSpec cluster = *find_cluster(name);
  cluster.gpus = gpus;
  return cluster;
}

bool measured(const ClusterSpec& cluster, const CurveUse& use = {}) {
  return counts_as_measured(borrowed_curves(cluster, use));
}

// H100: GEMMs and links are measured; the curve of attention gradients is that of the H200.
TEST(BorrowedCurves, NameThePartAndTheGpuThatLendsIt) {
  const std::vector<BorrowedCurve> borrowed = borrowed_curves(of("dgx-h100", 64), {});
  ASSERT_THAT(borrowed, SizeIs(1));
  EXPECT_EQ(borrowed[0].words, "attention gradients");
  EXPECT_EQ(borrowed[0].stand_in, StandIn::same_chip);
  EXPECT_EQ(borrowed[0].from, "curve of h200, the same GH100 chip");
  EXPECT_FALSE(borrowed[0].decides);
  EXPECT_TRUE(counts_as_measured(borrowed));
  EXPECT_FALSE(curves_assumption(of("dgx-h100", 64), {}).has_value());
}

TEST(BorrowedCurves, ACurveOfTheSameChipCountsAtTheSamePowerLimitAlone) {
  EXPECT_TRUE(measured(of("aws-p4d", 64)));        // A100 40 GB: the chip of the 80 GB
  EXPECT_TRUE(measured(of("deepseek-h800", 64)));  // H800: GH100 at 700 W
  EXPECT_FALSE(measured(of("h100-pcie", 8)));      // GH100 at 350 W
  EXPECT_FALSE(measured(of("h20-ib", 64)));        // 78 of 132 multiprocessors
  EXPECT_FALSE(measured(of("mi308x", 8)));
}

TEST(BorrowedCurves, CountOnlyTheLinksThatRanksNeed) {
  EXPECT_TRUE(measured(of("gcp-a3-ultra", 8)));    // NVLink, measured
  EXPECT_FALSE(measured(of("gcp-a3-ultra", 16)));  // RoCE too, which is not
  ClusterSpec spine = of("meta-h100", 3072);
  EXPECT_THAT(stand_ins_text(borrowed_curves(spine, {})), testing::Not(HasSubstr("spine")));
  spine.gpus = 6144;
  EXPECT_THAT(stand_ins_text(borrowed_curves(spine, {})), HasSubstr("roce links, spine links"));
}

TEST(BorrowedCurves, LookAtThePrecisionAndTheExpertsOfTheJob) {
  EXPECT_THAT(borrowed_curves(of("dgx-b200", 8), {DType::fp8, true}), IsEmpty());
  EXPECT_TRUE(measured(of("dgx-b200", 8), {DType::fp16, false}));  // as fast as bf16
  EXPECT_FALSE(measured(of("dgx-b200", 8), {DType::fp4, false}));  // by the curve of fp8
  EXPECT_THAT(stand_ins_text(borrowed_curves(of("dgx-h200", 8), {DType::bf16, true})),
              HasSubstr("experts' GEMMs (curve of b200, "));
}

TEST(BorrowedCurves, SayInOneLineWhatRestsOnDefaults) {
  const std::optional<Assumption> said = curves_assumption(of("mi308x", 8), {});
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->id, "curves.not_measured");
  EXPECT_EQ(said->text,
            "not measured on mi308x: GEMMs, attention, attention gradients, memory-bound kernels "
            "(defaults of cdna3); xgmi links (defaults)");
}

// The GPU that lends a curve is in the catalogue, and its own curve was measured or lent too.
TEST(BorrowedCurves, ComeFromGpusOfTheCatalogue) {
  for (const std::string& name : catalogue_names("gpus")) {
    SCOPED_TRACE(name);
    ClusterSpec cluster;
    cluster.gpu = *find_gpu(name);
    for (const BorrowedCurve& each : borrowed_curves(cluster, {DType::bf16, true})) {
      if (!each.from.starts_with("curve of ")) continue;
      const std::string lender = each.from.substr(9, each.from.find_first_of(", ", 9) - 9);
      EXPECT_TRUE(lender == "fp16" || find_gpu(lender).ok()) << each.from;  // V100 lends its fp16
    }
  }
}

}  // namespace
}  // namespace shardwise
