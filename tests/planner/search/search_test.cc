#include "planner/search/search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "planner/search/advice/relief.h"
#include "planner/search/advice/why_not.h"
#include "tests/planner/search/search_job.h"

namespace shardwise {
namespace {

/// Layouts that people compare first: same engine and degrees. They differ in micro-batch, stages,
/// recompute, sharding or order.
bool same_degrees(const Candidate& a, const Candidate& b) {
  const auto degrees = [](const Candidate& c) {
    const Layout& l = c.layout;
    return std::tuple(c.engine, l.tp, l.cp, l.pp, l.ep, l.etp, l.dp_shard, l.dp_replicate);
  };
  return degrees(a) == degrees(b);
}

TEST(Search, RanksAsTheNaivePath) {
  for (const Objective objective : {Objective::step_time, Objective::memory}) {
    SearchJob job("gpt2-xl", 16, "megatron_fsdp");
    job.request.objective = objective;
    const SearchResult result = job.found();
    std::vector<Candidate> expected = that_fit(job.all(), result.usable);
    std::ranges::stable_sort(expected, [&](const Candidate& a, const Candidate& b) {
      return ranks_before(objective, a, b);
    });
    std::vector<Candidate> distinct;
    for (const Candidate& each : expected) {
      const bool known = std::ranges::any_of(
          distinct, [&](const Candidate& other) { return same_degrees(each, other); });
      if (!known) distinct.push_back(each);
    }
    ASSERT_GE(distinct.size(), 10U);
    distinct.resize(10);
    EXPECT_EQ(layouts_of(result.best), layouts_of(distinct));
  }
}

// A list longer than there are degrees is never full: each set of degrees then bounds itself, and
// the list is still the best of each (F5).
TEST(Search, RanksAsTheNaivePathWhenTheListIsNeverFull) {
  for (const Objective objective : {Objective::step_time, Objective::memory}) {
    SearchJob job("gpt2-xl", 16, "megatron_fsdp");
    job.request.objective = objective;
    job.request.top = 10'000;
    for (const int threads : {1, 3}) {
      job.request.threads = threads;
      const SearchResult result = job.found();
      std::vector<Candidate> expected = that_fit(job.all(), result.usable);
      std::ranges::stable_sort(expected, [&](const Candidate& a, const Candidate& b) {
        return ranks_before(objective, a, b);
      });
      std::vector<Candidate> distinct;
      for (const Candidate& each : expected) {
        const bool known = std::ranges::any_of(
            distinct, [&](const Candidate& other) { return same_degrees(each, other); });
        if (!known) distinct.push_back(each);
      }
      EXPECT_LT(distinct.size(), 1000U);
      EXPECT_EQ(layouts_of(result.best), layouts_of(distinct));
    }
  }
}

// What is not full keeps no second layout of the same degrees that takes longer (F5).
TEST(BestLayouts, LeaveOutWhatIsWorseThanTheSameDegrees) {
  BestLayouts best(Objective::step_time, 10'000);
  Candidate known;
  known.layout.tp = 2;
  known.cost = {{1_GiB, 1_GiB, 1_GiB, Bytes(0)}, Seconds(5)};
  best.offer(known);
  Layout other = known.layout;
  EXPECT_EQ(best.time_limit(2_GiB, 0, other), Seconds(5));
  other.tp = 4;
  EXPECT_GT(best.time_limit(2_GiB, 0, other), Seconds(1e9));
  EXPECT_GT(best.time_limit(2_GiB, 1, known.layout), Seconds(1e9));
}

TEST(Search, FrontIsThatOfBruteForce) {
  SearchJob job("gpt2-xl", 16, "fsdp2");
  const SearchResult result = job.found();
  const std::vector<Candidate> all = that_fit(job.all(), result.usable);
  std::vector<Candidate> front;
  for (const Candidate& each : all) {
    const bool beaten = std::ranges::any_of(all, [&](const Candidate& other) {
      const bool as_good =
          other.cost.point <= each.cost.point && other.cost.step_time <= each.cost.step_time;
      const bool better = other.cost.point < each.cost.point ||
                          other.cost.step_time < each.cost.step_time || other.index < each.index;
      return as_good && better;
    });
    if (!beaten) front.push_back(each);
  }
  std::ranges::sort(front, {}, [](const Candidate& c) { return c.cost.point; });
  EXPECT_EQ(layouts_of(result.front), layouts_of(front));
  EXPECT_GT(front.size(), 3U);
}

TEST(Search, SmallestIsThatOfBruteForceWhereNothingFits) {
  SearchJob job("gpt2-xl", 8, "megatron_ddp");
  EXPECT_FALSE(job.found().smallest.has_value());
  for (const Bytes hbm : {1_GiB, 4_GiB}) {
    job.cluster.gpu.hbm_bytes = hbm;
    const SearchResult result = job.found();
    ASSERT_TRUE(result.best.empty());
    ASSERT_TRUE(result.smallest.has_value());
    const std::vector<Candidate> all = job.all();
    const auto smallest = std::ranges::min_element(all, [](const Candidate& a, const Candidate& b) {
      return ranks_before(Objective::memory, a, b);
    });
    EXPECT_EQ(result.smallest->layout, smallest->layout);
  }
}

TEST(Search, CountsAddUpAndMatchBruteForce) {
  SearchJob job("gpt2-xl", 8, "megatron_ddp");
  job.cluster.gpu.hbm_bytes = 30_GiB;  // so that some do not fit
  const SearchResult result = job.found();
  const SearchCounts& counts = result.counts.front();
  EXPECT_EQ(counts.space.enumerated, counts.space.pruned_total() + counts.space.legal);
  EXPECT_EQ(counts.space.legal, counts.does_not_fit + counts.at_risk + counts.ranked);
  const std::vector<Candidate> all = job.all();
  EXPECT_EQ(counts.space.legal, static_cast<std::int64_t>(all.size()));
  EXPECT_EQ(counts.ranked, std::ranges::count_if(all, [&](const Candidate& c) {
              return fit_of(c.cost, result.usable) == Fit::fits;
            }));
  EXPECT_EQ(counts.does_not_fit, std::ranges::count_if(all, [&](const Candidate& c) {
              return fit_of(c.cost, result.usable) == Fit::does_not_fit;
            }));
  EXPECT_GT(counts.does_not_fit, 0);
  EXPECT_GT(counts.ranked, 0);
}

// A bound may only save time.
TEST(Search, FindsTheSameWithoutTheAnswerOfTheUsualSpace) {
  for (const char* engine : {"megatron_ddp", "megatron_fsdp"}) {
    for (const Objective objective : {Objective::step_time, Objective::memory}) {
      SearchJob job("gpt2-xl", 16, engine);
      job.request.breadth = Breadth::full;
      job.request.objective = objective;
      job.request.locks = {{"order", "tp-cp-ep-dp_shard-dp_replicate-pp"}};
      job.cluster.gpu.hbm_bytes = 20_GiB;
      const SearchResult bounded = job.found();
      job.request.bounded = false;
      const SearchResult timed = job.found();
      EXPECT_EQ(layouts_of(bounded.best), layouts_of(timed.best));
      EXPECT_EQ(layouts_of(bounded.front), layouts_of(timed.front));
      const SearchCounts& saved = bounded.counts.front();
      const SearchCounts& all = timed.counts.front();
      EXPECT_GT(saved.too_slow, 0);
      EXPECT_EQ(all.too_slow, 0);
      EXPECT_EQ(saved.ranked + saved.too_slow, all.ranked);
      EXPECT_EQ(saved.at_risk, all.at_risk);
      EXPECT_EQ(saved.does_not_fit, all.does_not_fit);
    }
  }
}

// Without a front fewer layouts are timed; the best and the counts stay.
TEST(Search, FindsTheSameBestWithoutAFront) {
  for (const char* engine : {"megatron_ddp", "fsdp2"}) {
    for (const Breadth breadth : {Breadth::usual, Breadth::full}) {
      SearchJob job("gpt2-xl", 16, engine);
      job.request.breadth = breadth;
      job.request.locks = {{"order", "tp-cp-ep-dp_shard-dp_replicate-pp"}};
      const SearchResult with = job.found();
      job.request.front = false;
      const SearchResult without = job.found();
      EXPECT_EQ(layouts_of(without.best), layouts_of(with.best));
      EXPECT_TRUE(without.front.empty());
      EXPECT_EQ(without.counts.front().ranked + without.counts.front().too_slow,
                with.counts.front().ranked + with.counts.front().too_slow);
      job.request.top = 1;
      const SearchResult one = job.found();
      ASSERT_EQ(one.best.size(), 1U);
      EXPECT_EQ(one.best.front().layout, with.best.front().layout);
    }
  }
}

TEST(Search, IsTheSameForAnyNumberOfThreads) {
  SearchJob job("llama-3.1-8b", 32, "megatron_ddp");
  job.request.engines.push_back(find_engine("fsdp2"));
  job.request.breadth = Breadth::full;
  job.request.locks = {{"cp", "1"}, {"recompute", "none"}};
  const SearchResult one = job.found();
  ASSERT_FALSE(one.best.empty());
  for (const int threads : {2, 5}) {
    job.request.threads = threads;
    const SearchResult many = job.found();
    EXPECT_EQ(layouts_of(many.best), layouts_of(one.best));
    EXPECT_EQ(layouts_of(many.front), layouts_of(one.front));
    ASSERT_EQ(many.counts.size(), one.counts.size());
    for (std::size_t e = 0; e < one.counts.size(); ++e) {
      EXPECT_EQ(many.counts[e].ranked, one.counts[e].ranked);
      EXPECT_EQ(many.counts[e].too_slow, one.counts[e].too_slow);
      EXPECT_EQ(many.counts[e].space.enumerated, one.counts[e].space.enumerated);
      EXPECT_EQ(many.counts[e].space.pruned_total(), one.counts[e].space.pruned_total());
    }
  }
}

TEST(Search, MoreMemoryNeverLosesAPlan) {
  SearchJob job("gpt2-xl", 8, "fsdp2");
  std::int64_t ranked = 0;
  Seconds best(1e300);
  for (const Bytes hbm : {4_GiB, 8_GiB, 16_GiB, 24_GiB, 40_GiB, 80_GiB, 192_GiB}) {
    job.cluster.gpu.hbm_bytes = hbm;
    const SearchResult result = job.found();
    EXPECT_GE(result.counts.front().ranked, ranked) << hbm.value();
    ranked = result.counts.front().ranked;
    if (ranked == 0) continue;
    EXPECT_LE(result.best.front().cost.step_time, best) << hbm.value();
    best = result.best.front().cost.step_time;
  }
  EXPECT_GT(ranked, 0);
}

TEST(Search, RespectsLocksAndTheMemoryLimit) {
  SearchJob job("gpt2-xl", 16, "megatron_ddp");
  job.request.locks = {{"pp", "2"}, {"vpp", "3"}};
  job.request.most_memory = 20_GiB;
  const SearchResult result = job.found();
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(result.usable, 20_GiB);
  for (const Candidate& each : result.best) {
    EXPECT_EQ(each.layout.pp, 2);
    EXPECT_EQ(each.layout.vpp, 3);
    EXPECT_LE(each.cost.upper, 20_GiB);
  }
}

TEST(Search, SaysWhatIsWrongWithALock) {
  SearchJob job("gpt2", 8, "megatron_ddp");
  job.request.model = &job.model;
  job.request.cluster = &job.cluster;
  job.request.job = &job.job;
  job.request.locks = {{"tq", "2"}};
  const Result<SearchResult> result = search(job.request);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.problems().front().message, "tq is not a field of a layout (did you mean tp?)");
}

TEST(WhyNot, TellsIllegalTooLargeSlowerAndBestApart) {
  SearchJob job("llama-3.1-8b", 8, "megatron_ddp");
  const SearchResult result = job.found();
  ASSERT_FALSE(result.best.empty());
  const Candidate& winner = result.best.front();
  const auto ask = [&](const std::vector<std::pair<std::string, std::string>>& values) {
    return *why_not(job.request, winner, values);
  };
  const WhyNot illegal = ask({{"tp", "3"}});
  EXPECT_EQ(illegal.answer, WhyNot::Answer::illegal);
  EXPECT_THAT(illegal.reasons, testing::Contains(testing::Field(
                                   &Diagnostic::message,
                                   testing::HasSubstr("3 does not divide 32 attention heads"))));

  const WhyNot large = ask({{"zero_stage", "0"}, {"tp", "1"}, {"pp", "1"}});
  EXPECT_EQ(large.answer, WhyNot::Answer::does_not_fit);
  EXPECT_GT(large.other.verdict.upper, result.usable);
  const auto growth = memory_growth(large.winner, large.other);
  ASSERT_FALSE(growth.empty());
  EXPECT_TRUE(std::ranges::is_sorted(growth, std::ranges::greater(),
                                     [](const auto& each) { return each.second; }));

  const WhyNot slower = ask({{"recompute", "full"}});
  EXPECT_EQ(slower.answer, WhyNot::Answer::slower);
  EXPECT_GT(slower.other.step_time, slower.winner.step_time);
  EXPECT_GT(slower.other.time.recompute, Seconds(0));

  const WhyNot best = ask({{"tp", std::to_string(winner.layout.tp)}});
  EXPECT_EQ(best.answer, WhyNot::Answer::best);
}

TEST(CheapestRelief, NamesAChangeAfterWhichALayoutFits) {
  SearchJob job("llama-3.1-70b", 8, "megatron_ddp");
  job.request.locks = {{"pp", "1"}};
  const SearchResult result = job.found();
  ASSERT_TRUE(result.best.empty());
  ASSERT_TRUE(result.smallest.has_value());
  std::vector<std::string> tried;
  const std::optional<Relief> relief =
      cheapest_relief(job.request, [&](const std::string& what) { tried.push_back(what); });
  EXPECT_THAT(tried, testing::Contains("without --lock pp=1"));
  ASSERT_TRUE(relief.has_value());
  EXPECT_LE(relief->best.cost.upper, result.usable);
}

// By whole nodes from where it does not fit: nothing fits on one node fewer.
TEST(FewestGpus, AreTheFirstOnWhichALayoutFits) {
  for (const char* engine : {"megatron_ddp", "fsdp2"}) {
    SearchJob job("llama-3.1-70b", 8, engine);
    ASSERT_TRUE(job.found().best.empty());
    std::vector<std::string> tried;
    const std::optional<Relief> found =
        fewest_gpus(job.request, [&](const std::string& what) { tried.push_back(what); });
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->text, fmt::format("--gpus {}", found->gpus));
    EXPECT_EQ(found->best.layout.world(), found->gpus);
    EXPECT_THAT(tried, testing::Contains(found->text));
    for (std::int64_t gpus = 16; gpus < found->gpus; gpus += 8) {
      SearchJob fewer("llama-3.1-70b", gpus, engine);
      EXPECT_TRUE(fewer.found().best.empty()) << engine << " on " << gpus;
    }
    SearchJob enough("llama-3.1-70b", found->gpus, engine);
    EXPECT_FALSE(enough.found().best.empty());
  }
}

// Defect F5: the full space of 256 GPUs takes minutes, and a dozen counts may be tried.
TEST(FewestGpus, AreThoseOfTheUsualSpaceWhereTheFullOneIsSearched) {
  SearchJob job("llama-3.1-70b", 8, "fsdp2");
  std::vector<std::string> tried;
  const auto say = [&](const std::string& what) { tried.push_back(what); };
  const std::optional<Relief> usual = fewest_gpus(job.ask(), say);
  tried.clear();
  job.request.breadth = Breadth::full;
  const std::optional<Relief> full = fewest_gpus(job.ask(), say);
  ASSERT_TRUE(usual && full);
  EXPECT_EQ(full->gpus, usual->gpus);
  EXPECT_EQ(full->text, usual->text + " --space usual");
  EXPECT_THAT(tried, testing::Each(testing::EndsWith(" --space usual")));
}

TEST(FewestGpus, AreNoneWhereTheClusterHasNoMore) {
  SearchJob job("llama-3.1-405b", 8, "fsdp2");
  job.cluster.tiers.resize(1);
  job.cluster.tiers.front().domain_size = 8;
  EXPECT_FALSE(fewest_gpus(job.ask(), [](const std::string&) {}).has_value());
}

}  // namespace
}  // namespace shardwise
