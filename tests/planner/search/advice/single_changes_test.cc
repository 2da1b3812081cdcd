#include "planner/search/advice/single_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/estimate/loss_rows.h"
#include "planner/legality/legality.h"
#include "planner/search/explore.h"
#include "planner/spec/plan/plan_fields.h"
#include "tests/planner/search/search_job.h"

namespace shardwise {
namespace {

std::vector<std::string> changed_fields(const Layout& a, const Layout& b) {
  std::vector<std::string> fields;
  for (const std::string& key : layout_keys()) {
    if (field_text(a, key) != field_text(b, key)) fields.push_back(key);
  }
  return fields;
}

struct ChangedCase {
  const char* model;
  const char* engine;
};

class Neighbours : public testing::TestWithParam<ChangedCase> {
 protected:
  /// Calls check(selected layout, its neighbours) for layouts all over the space.
  template <class Check>
  void for_layouts(SearchJob& job, Check check) {
    const Result<Exploration> all = explore(job.ask());
    ASSERT_TRUE(all.ok());
    ASSERT_GT(all->rows(), 0U);
    constexpr std::size_t kLayouts = 4;
    for (std::size_t i = 0; i < kLayouts; ++i) {
      const Layout layout = all->layout[(2 * i + 1) * all->rows() / (2 * kLayouts)];
      check(layout, neighbours(job.model, job.cluster, job.job, *job.request.engines.front(),
                               layout, all->usable));
    }
  }
};

TEST_P(Neighbours, AreLegalAndPricedAsAlone) {
  SearchJob job(GetParam().model, 16, GetParam().engine);
  const EngineProfile& engine = *job.request.engines.front();
  for_layouts(job, [&](const Layout& layout, const std::vector<Neighbour>& all) {
    ASSERT_FALSE(all.empty());
    const Evaluation now = evaluate(job.model, job.cluster, job.job, engine, layout);
    for (const Neighbour& each : all) {
      const std::string& text = each.change.text;
      EXPECT_TRUE(check_layout(job.model, job.cluster, job.job, engine, each.change.layout).empty())
          << text;
      EXPECT_EQ(each.change.layout.world(), layout.world()) << text;
      const Evaluation cost = evaluate(job.model, job.cluster, job.job, engine, each.change.layout);
      EXPECT_EQ(each.cost.point, cost.point) << text;
      EXPECT_EQ(each.cost.upper, cost.upper) << text;
      EXPECT_EQ(each.cost.step_time, cost.step_time) << text;
      EXPECT_EQ(each.memory_gained, now.point - cost.point) << text;
      EXPECT_EQ(each.time_gained, now.step_time - cost.step_time) << text;
    }
  });
}

TEST_P(Neighbours, DifferFromTheLayoutAndFromOneAnother) {
  SearchJob job(GetParam().model, 16, GetParam().engine);
  for_layouts(job, [&](const Layout& layout, const std::vector<Neighbour>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_FALSE(changed_fields(layout, all[i].change.layout).empty());
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_NE(all[i].change.layout, all[j].change.layout) << all[i].change.text;
      }
    }
  });
}

// Who goes to a neighbour finds the way back among its neighbours, with the opposite gain.
TEST_P(Neighbours, LeadBack) {
  SearchJob job(GetParam().model, 16, GetParam().engine);
  const EngineProfile& engine = *job.request.engines.front();
  int back = 0;
  int looked = 0;
  for_layouts(job, [&](const Layout& layout, const std::vector<Neighbour>& all) {
    for (std::size_t i = 0; i < all.size(); i += 5) {
      ++looked;
      const auto theirs =
          neighbours(job.model, job.cluster, job.job, engine, all[i].change.layout, Bytes(0));
      const auto same = std::ranges::find_if(
          theirs, [&](const Neighbour& each) { return each.change.layout == layout; });
      if (same == theirs.end()) continue;
      ++back;
      EXPECT_EQ(same->memory_gained.value(), -all[i].memory_gained.value());
      EXPECT_EQ(same->time_gained.value(), -all[i].time_gained.value());
    }
  });
  // A degree of one loses what came with it: sequence parallelism, a ZeRO stage.
  EXPECT_GT(back, looked / 2);
}

TEST_P(Neighbours, HaveEverySingleChange) {
  SearchJob job(GetParam().model, 16, GetParam().engine);
  const EngineProfile& engine = *job.request.engines.front();
  for_layouts(job, [&](const Layout& layout, const std::vector<Neighbour>& all) {
    for (const LayoutChange& change :
         single_changes(job.model, job.cluster, job.job, engine, layout)) {
      EXPECT_TRUE(std::ranges::any_of(all, [&](const Neighbour& each) {
        return each.change.layout == change.layout;
      })) << change.text;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Jobs, Neighbours,
                         testing::Values(ChangedCase{"gpt2-xl", "megatron_ddp"},
                                         ChangedCase{"gpt2-xl", "fsdp2"},
                                         ChangedCase{"llama-3.1-8b", "megatron_fsdp"},
                                         ChangedCase{"deepseek-v2-lite", "megatron_ddp"}),
                         [](const auto& each) {
                           std::string name =
                               std::string(each.param.model) + "_" + each.param.engine;
                           std::ranges::replace_if(
                               name, [](char ch) { return ch == '-' || ch == '.'; }, '_');
                           return name;
                         });

// Twice the micro-batch without a stated batch is a step of other sequences.
TEST(NeighboursOf, CompareTheTimeOfAsManySequences) {
  SearchJob job("gpt2-xl", 16, "megatron_ddp");
  job.job.global_batch_size = 0;
  const EngineProfile& engine = *job.request.engines.front();
  Layout layout;
  layout.dp_shard = 16;
  layout.zero_stage = 1;
  layout.micro_batch_size = 1024;
  const Evaluation now = evaluate(job.model, job.cluster, job.job, engine, layout);
  int larger = 0;
  for (const Neighbour& each :
       neighbours(job.model, job.cluster, job.job, engine, layout, Bytes(0))) {
    const auto sequences = [&](const Layout& l) {
      return static_cast<double>(job.job.batch_for(l.dp(), l.micro_batch_size));
    };
    const double ratio = sequences(each.change.layout) / sequences(layout);
    larger += ratio > 1 ? 1 : 0;
    const Evaluation cost = evaluate(job.model, job.cluster, job.job, engine, each.change.layout);
    EXPECT_NEAR(each.time_gained / now.step_time, 1 - cost.step_time / now.step_time / ratio, 1e-9);
  }
  EXPECT_GT(larger, 0);
}

TEST(NeighboursOf, AreThoseThatWerePricedWhenItIsStopped) {
  SearchJob job("gpt2-xl", 16, "megatron_ddp");
  Layout layout;
  layout.dp_shard = 16;
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(neighbours(job.model, job.cluster, job.job, *job.request.engines.front(), layout,
                         Bytes(0), source.get_token())
                  .empty());
}

}  // namespace
}  // namespace shardwise
