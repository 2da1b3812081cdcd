#include "planner/search/advice/sizing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "planner/cost/kernels/flops.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/model/hf_config.h"
#include "planner/search/advice/sizing_json.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

using ::testing::ElementsAre;

ClusterSpec cluster(const std::string& name, double dollars, double petaflops) {
  ClusterSpec c;
  c.name = name;
  c.gpu.name = name + "-gpu";
  c.gpu.peaks = {{DType::bf16, FlopsPerSecond(petaflops * 1e15)}};
  c.gpus_per_node = 8;
  c.mtbf_hours_per_gpu = 50000;
  if (dollars > 0) c.price_per_gpu_hour = dollars;
  return c;
}

/// A job that runs at half of peak on any count of GPUs from `least` on. 6e9 FLOP a token.
BestStep half_of_peak(std::int64_t least) {
  return [least](const ClusterSpec& c) -> std::optional<StepReport> {
    if (c.gpus < least) return std::nullopt;
    StepReport report;
    report.tokens_per_s = 0.5 * c.gpu.peak(DType::bf16).value() * static_cast<double>(c.gpus) / 6e9;
    report.checkpoint_write = Seconds(30);
    report.verdict.usable = 80_GiB;
    report.verdict.upper = 60_GiB;
    return report;
  };
}

SizingGoal goal(double days) {
  SizingGoal g;
  g.tokens = 1'000'000'000'000;
  g.deadline = Seconds(days * 86400);
  g.work = Flops(6e21);
  return g;
}

TEST(GpuCounts, ArePartsOfANodeThenWholeNodes) {
  EXPECT_THAT(gpu_counts(cluster("a", 0, 1), 100), ElementsAre(1, 2, 4, 8, 16, 24, 32, 48, 64, 96));
}

TEST(GpuCounts, FollowNodesThatAreNoPowerOfTwo) {
  ClusterSpec nvl = cluster("nvl", 0, 1);
  nvl.gpus_per_node = 72;
  EXPECT_THAT(gpu_counts(nvl, 300), ElementsAre(1, 2, 3, 4, 6, 8, 12, 24, 72, 144, 288));
}

// 1e12 tokens at 0.5e15 / 6e9 tokens/s a GPU are 1.2e7 GPU-seconds: 3,333 GPU-hours and what
// failures cost. At $2 that is about $6,667.
TEST(PriceOffer, CountsHoursDollarsAndFailures) {
  ClusterSpec c = cluster("a", 2, 1);
  c.gpus = 16;
  const SizingOffer offer = price_offer(c, *half_of_peak(1)(c), goal(30));
  EXPECT_NEAR(offer.gpu_hours * offer.goodput.share, 1.2e7 / 3600, 1e-6);
  EXPECT_NEAR(offer.dollars, offer.gpu_hours * 2, 1e-9);
  EXPECT_GT(offer.goodput.share, 0.97);
  EXPECT_LT(offer.goodput.share, 1);
  EXPECT_NEAR(offer.headroom, 0.25, 1e-12);
  EXPECT_TRUE(offer.in_time);
}

TEST(SizePurchase, PutsTheCheapestInTimeFirst) {
  const Sizing sizing =
      size_purchase({cluster("dear", 4, 1), cluster("cheap", 1, 1), cluster("unpriced", 0, 1)},
                    goal(10), half_of_peak(1));
  ASSERT_EQ(sizing.offers.size(), 9U);
  EXPECT_EQ(sizing.offers.front().cluster, "cheap");
  EXPECT_EQ(sizing.offers.back().cluster, "unpriced");
  // 138.9 GPU-days of work in 10 days: 16 GPUs are the fewest that make it.
  EXPECT_EQ(sizing.offers.front().gpus, 16);
  for (const SizingOffer& offer : sizing.offers) EXPECT_TRUE(offer.in_time);
}

TEST(SizePurchase, SaysWhatIsTooLateAndWhatDoesNotFit) {
  SizingGoal hurry = goal(1);
  hurry.most_gpus = 128;
  const Sizing sizing =
      size_purchase({cluster("slow", 1, 1), cluster("slower", 1, 0.5)}, hurry, half_of_peak(1));
  EXPECT_TRUE(sizing.offers.empty());
  ASSERT_EQ(sizing.late.size(), 1U);
  EXPECT_EQ(sizing.late.front().gpus, 128);
  ASSERT_EQ(sizing.refusals.size(), 2U);
  EXPECT_THAT(sizing.refusals.front().reason, ::testing::HasSubstr("at best, on 128 GPUs"));
  EXPECT_EQ(sizing.refusals.back().reason, "too late at peak speed on 128 GPUs");

  const Sizing small = size_purchase({cluster("small", 1, 1)}, goal(30), half_of_peak(1 << 20));
  ASSERT_EQ(small.refusals.size(), 1U);
  EXPECT_EQ(small.refusals.front().reason, "no layout fits its memory");
}

TEST(SizePurchase, TriesNoCountThatPeakSpeedRulesOut) {
  std::vector<std::int64_t> tried;
  (void)size_purchase({cluster("a", 1, 1)}, goal(10), half_of_peak(1),
                      [&](const SizingProgress& at) { tried.push_back(at.gpus); });
  // 6e21 FLOP in 864,000 s need 6.9 GPUs at 1 PFLOP/s.
  EXPECT_THAT(tried, ElementsAre(8, 16, 24, 32));
}

// More GPUs leave each more memory, and layouts become faster, until groups grow too large: the
// cheapest count is not the first that is in time.
TEST(SizePurchase, FindsTheCheapestOfBruteForce) {
  const auto job = [](double best_gpus) {
    return [best_gpus](const ClusterSpec& c) -> std::optional<StepReport> {
      std::optional<StepReport> report = half_of_peak(1)(c);
      const double off = std::log2(static_cast<double>(c.gpus) / best_gpus);
      report->tokens_per_s *= std::exp(-0.3 * off * off);
      return report;
    };
  };
  const std::vector<ClusterSpec> clusters = {cluster("dear", 3, 1), cluster("cheap", 2, 0.8)};
  for (const double best_gpus : {8.0, 20.0, 64.0, 200.0}) {
    for (const double days : {3.0, 10.0, 60.0}) {
      SCOPED_TRACE(fmt::format("{} GPUs, {} days", best_gpus, days));
      std::optional<SizingOffer> cheapest;
      for (ClusterSpec c : clusters) {
        for (const std::int64_t gpus : gpu_counts(c, 4096)) {
          c.gpus = gpus;
          const SizingOffer offer = price_offer(c, *job(best_gpus)(c), goal(days));
          if (!offer.in_time) continue;
          if (!cheapest || offer.dollars < cheapest->dollars) cheapest = offer;
        }
      }
      SizingGoal asked = goal(days);
      asked.most_gpus = 4096;
      const Sizing sizing = size_purchase(clusters, asked, job(best_gpus));
      ASSERT_EQ(sizing.offers.empty(), !cheapest.has_value());
      if (!cheapest) continue;
      EXPECT_EQ(sizing.offers.front().cluster, cheapest->cluster);
      EXPECT_EQ(sizing.offers.front().gpus, cheapest->gpus);
      EXPECT_EQ(sizing.offers.front().dollars, cheapest->dollars);
    }
  }
}

TEST(SizePurchase, StatesTheFailureRateItAssumed) {
  ClusterSpec silent = cluster("silent", 1, 1);
  silent.mtbf_hours_per_gpu = 0;
  const Sizing sizing = size_purchase({silent}, goal(10), half_of_peak(1));
  const auto& all = sizing.assumptions;
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Assumption& a) {
    return a.id == "sizing.mtbf" && a.text == "one failure in 50677 GPU-hours on silent";
  }));
}

// A machine whose GEMMs and links were measured goes before a cheaper one on defaults of its
// architecture. Smaller curves on defaults, and GEMMs of the same chip, hold nothing back.
TEST(SizePurchase, PutsMeasuredMachinesFirst) {
  const auto with_gemm = [](const char* name, double dollars, FitRecord fit) {
    ClusterSpec c = cluster(name, dollars, 1);
    c.gpu.gemm.emplace_back();
    c.gpu.gemm.front().fit = std::move(fit);
    return c;
  };
  const ClusterSpec measured = with_gemm("measured", 4, {true, "data", "fit", 9, 0, 0});
  const ClusterSpec sister =
      with_gemm("sister", 5, {false, "", "the curve of measured-gpu (the same GH100 chip)"});
  const ClusterSpec guessed =
      with_gemm("guessed", 1, {false, "", "default of the architecture (hopper)"});
  const Sizing sizing = size_purchase({guessed, sister, measured}, goal(10), half_of_peak(1));
  ASSERT_EQ(sizing.offers.size(), 9U);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(sizing.offers[i].measured, i < 6);
    EXPECT_EQ(sizing.offers[i].cluster == "guessed", i >= 6);
    EXPECT_FALSE(sizing.offers[i].borrowed.empty());  // attention, of all three
  }
  EXPECT_EQ(sizing.offers.front().cluster, "measured");
  EXPECT_GT(sizing.offers.front().dollars, sizing.offers.back().dollars);
}

// What bounds spare changes no offer: the same sweep with a search whose list is never full, so
// that each layout that fits is timed.
TEST(BestStep, IsThatOfASearchThatTimesEveryLayout) {
  const struct {
    const char* model;
    const char* engine;
    std::vector<const char*> clusters;
    double tokens;
    double days;
  } questions[] = {{"gpt2-xl", "megatron_ddp", {"dgx-h100", "aws-p4d"}, 2e11, 5},
                   {"llama-3.1-8b", "fsdp2", {"mi300x"}, 1e11, 30},
                   {"gpt2", "fsdp1", {"rtx-4090-x8"}, 1e11, 5}};
  for (const auto& q : questions) {
    SCOPED_TRACE(q.model);
    const ModelSpec model = *load_model(q.model);
    const EngineProfile& engine = *find_engine(q.engine);
    std::vector<ClusterSpec> clusters;
    for (const char* name : q.clusters) clusters.push_back(*find_cluster(name));
    JobSpec job;
    job.global_batch_size = 64;
    job.sequence_length = 2048;
    SizingGoal asked;
    asked.tokens = static_cast<std::int64_t>(q.tokens);
    asked.deadline = Seconds(q.days * 86400);
    asked.work = model_flops(model, job).causal * (q.tokens / 2048);
    asked.most_gpus = 32;
    const BestStep exhaustive = [&](const ClusterSpec& c) -> std::optional<StepReport> {
      SearchRequest request;
      request.model = &model;
      request.cluster = &c;
      request.job = &job;
      request.engines = {&engine};
      request.top = 10'000;  // none is left out, so none is too slow
      request.bounded = false;
      const SearchResult found = *search(request);
      if (found.best.empty() && found.risky.empty()) return std::nullopt;
      const Candidate& winner = found.best.empty() ? found.risky.front() : found.best.front();
      return estimate(model, c, job, engine, winner.layout);
    };
    const Sizing sizing = size_purchase(clusters, asked, best_step(model, job, engine));
    EXPECT_FALSE(sizing.offers.empty());
    EXPECT_EQ(to_json(sizing, asked), to_json(size_purchase(clusters, asked, exhaustive), asked));
  }
}

}  // namespace
}  // namespace shardwise
