#include "planner/search/best_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "tests/planner/search/search_job.h"

namespace shardwise {
namespace {

struct RowsCase {
  const char* model;
  std::int64_t gpus;
  const char* engine;
  Bytes hbm;
};

class BestRowsOf : public testing::TestWithParam<RowsCase> {
 protected:
  static SearchJob job() {
    const RowsCase& c = GetParam();
    SearchJob job(c.model, c.gpus, c.engine);
    job.cluster.gpu.hbm_bytes = c.hbm;
    return job;
  }
};

/// The fastest `most` rows that fit, and the front.
std::set<std::uint32_t> best_of(const Exploration& all, std::size_t most) {
  std::set<std::uint32_t> best;
  for (const std::uint32_t row : ranked_rows(all, Objective::step_time)) {
    if (all.fit[row] == Fit::fits && best.size() < most) best.insert(row);
  }
  for (const std::uint32_t row : front_rows(all)) best.insert(row);
  return best;
}

TEST_P(BestRowsOf, AnExplorationAreTimedAndNoOthers) {
  SearchJob job = BestRowsOf::job();
  const Exploration all = explored(job);
  for (const std::size_t most : {1U, 7U, 1000000U}) {
    const std::set<std::uint32_t> expected = best_of(all, most);
    for (const int threads : {1, 4}) {
      job.request.threads = threads;
      ExploreOptions options;
      options.most_timed = most;
      std::vector<std::uint32_t> timed;
      options.timed = [&](const Exploration&, std::span<const std::uint32_t> rows) {
        timed.insert(timed.end(), rows.begin(), rows.end());
      };
      const Exploration best = explored(job, options);
      EXPECT_EQ(timed, std::vector(expected.begin(), expected.end()));
      ASSERT_EQ(best.index, all.index);
      for (std::uint32_t row = 0; row < all.rows(); ++row) {
        ASSERT_EQ(best.timed(row), expected.contains(row));
        if (best.timed(row)) {
          EXPECT_EQ(best.step_time[row], all.step_time[row]);
        }
      }
    }
  }
}

TEST_P(BestRowsOf, AnExplorationLeaveTheOthersBoundsThatRankAfterThem) {
  SearchJob job = BestRowsOf::job();
  const Exploration all = explored(job);
  ExploreOptions options;
  options.most_timed = 9;
  const Exploration best = explored(job, options);
  std::size_t raised = 0;
  for (std::size_t row = 0; row < all.rows(); ++row) {
    EXPECT_LE(best.known_time(row), all.step_time[row]);
    EXPECT_GE(best.known_time(row), all.least_time[row]);
    raised += !best.timed(row) && best.known_time(row) > all.least_time[row] ? 1U : 0U;
  }
  EXPECT_GT(raised, 0U);
  const Rows known = ranked_rows(best, Objective::step_time);
  const Rows ranked = ranked_rows(all, Objective::step_time);
  ASSERT_GT(std::ranges::count(all.fit, Fit::fits), 9);
  EXPECT_TRUE(std::equal(known.begin(), known.begin() + 9, ranked.begin()));
}

INSTANTIATE_TEST_SUITE_P(Jobs, BestRowsOf,
                         testing::Values(RowsCase{"gpt2-xl", 8, "megatron_fsdp", 80_GiB},
                                         RowsCase{"gpt2-xl", 8, "megatron_ddp", 20_GiB},
                                         RowsCase{"llama-3.1-8b", 16, "fsdp2", 80_GiB}));

}  // namespace
}  // namespace shardwise
