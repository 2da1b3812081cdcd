#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "planner/engines/engines.h"
#include "planner/legality/layout_rules.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/closed_form.h"
#include "simulator/clock/simulate.h"
#include "tests/planner/lowering/sampler.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"
#include "tests/support/seed.h"

namespace shardwise::sim {

/// A plan of 16 layers on GPUs of DGX H100.
inline Plan example(const std::string& engine, std::int64_t gpus) {
  Plan plan;
  plan.model = test::llama(16, 4096, 14336, 32, 8, 32000);
  plan.engine = *find_engine(engine);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), gpus);
  plan.job.sequence_length = 4096;
  plan.job.global_batch_size = 32;
  return plan;
}

/// Of so many plans one is drawn: a fourth of them unless SHARDWISE_WHOLE_DRAWS is set, as the test
/// drawn_plans_whole sets it. Sanitizers make ten times as slow: how near the closed form is
/// to the simulator is judged without them.
inline int drawn_of() {
  if (test::kSanitized) return 8;
  static const bool whole = std::getenv("SHARDWISE_WHOLE_DRAWS") != nullptr;
  return whole ? 1 : 4;
}

/// Seeds of what is drawn engine by engine. An engine that was added after the others has seeds of
/// its own, so that it moves nobody's draws.
class SeedsOfEngines {
 public:
  explicit SeedsOfEngines(std::uint32_t base) : base_(base), last_(base) {}

  std::uint32_t next(const std::string& engine) {
    if (engine != "pytorch_ddp") return ++last_;
    return test::seed_of(base_, engine) + ++later_;
  }

 private:
  std::uint32_t base_;
  std::uint32_t last_;
  std::uint32_t later_ = 0;
};

/// Plans with layouts drawn from the whole search space of an engine.
template <class Visit>
void draw(Plan plan, int count, std::uint32_t seed, Visit&& visit) {
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  test::Sampler sampler(question, seed);
  for (int tries = 0; tries < 1'000'000 && count > 0; ++tries) {
    plan.layout = sampler.draw();
    if (!sampler.legal(plan.layout)) continue;
    count -= drawn_of();
    visit(plan);
  }
}

/// Step time by the closed form when collectives do not slow compute down.
/// \param host  kernels wait to be issued
inline double unslowed(const Plan& plan, bool host = false) {
  return closed_form_step(plan, {false, host, false}).value();
}

inline double simulated(const Plan& plan, bool host = false) {
  SimulationOptions options;
  options.contention = false;
  options.host = host;
  return simulate(plan, options).report.step_time.value();
}

/// The search would take the layout: it shares states, and no rule calls it another one's double.
inline bool is_itself(const Plan& plan) {
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  return std::ranges::none_of(layout_rules(), [&](const LayoutRule& rule) {
    return rule.redundant && rule.broken(question, plan.layout);
  });
}

/// A mixture of experts, on the same GPUs.
inline Plan mixture_example(const std::string& engine, std::int64_t gpus) {
  Plan plan = example(engine, gpus);
  plan.model = test::mixture(16, 2048, 16, 16, 2, 1024, 0);
  return plan;
}

/// Pipelines of a plan's engine that the search would take, gathers and reductions beside compute.
/// \param change  makes another layout of one that was drawn
template <class Change, class Visit>
void draw_pipelines(Plan plan, int count, std::uint32_t seed, Change&& change, Visit&& visit,
                    int most_tries = 2'000'000) {
  if (!plan.engine.pipeline) return;
  const LayoutQuestion question = layout_question(plan.model, plan.cluster, plan.job, plan.engine);
  test::Sampler sampler(question, seed);
  for (int tries = 0; tries < most_tries / drawn_of() && count > 0; ++tries) {
    plan.layout = sampler.draw();
    const Layout& layout = plan.layout;
    change(plan.layout);
    if (layout.pp == 1 || !layout.overlap_grad_reduce || !layout.overlap_param_gather) continue;
    if (!sampler.legal(plan.layout) || !is_itself(plan)) continue;
    count -= drawn_of();
    visit(plan);
  }
}

/// How far simulator and closed form are apart in drawn layouts: at most 0.5 %, or 1.1 % where
/// kernels wait to be issued, and 2 % where buckets are small besides.
class Apart {
 public:
  void expect_near(const Plan& plan) {
    ++drawn_;
    const std::string named = plan.engine.name + " " + plan.model.name + " " +
                              std::to_string(plan.cluster.gpus) + " " + test::text_of(plan.layout);
    const double alone = unslowed(plan);
    const double apart = simulated(plan) / alone - 1;
    EXPECT_NEAR(apart, 0, 0.005) << named;
    if (std::abs(apart) <= 0.001) ++near_;
    farthest_ = std::max(farthest_, std::abs(apart));
    const double issued = unslowed(plan, true);
    if (issued < 1.0005 * alone && drawn_ % 4 != 0) return;
    const double issued_apart = simulated(plan, true) / issued - 1;
    // The host issues a collective for each of many small buckets, which the closed form adds up
    // over a stage (docs/time.md, The rest).
    const double most = plan.layout.ddp_bucket_size > 0 ? 0.02 : 0.011;
    EXPECT_NEAR(issued_apart, 0, most) << named << " with its host, " << issued / alone << " x";
    ++issued_;
    if (std::abs(issued_apart) <= 0.001) ++issued_near_;
    farthest_issued_ = std::max(farthest_issued_, std::abs(issued_apart));
  }
  int drawn() const { return drawn_; }
  int near() const { return near_; }
  /// Records what was drawn; expects more than `least`, nine of ten of them within 0.1 %.
  void expect_drawn(int least) const {
    ::testing::Test::RecordProperty("drawn", drawn_);
    ::testing::Test::RecordProperty("within_a_thousandth", near_);
    ::testing::Test::RecordProperty("farthest_percent", std::to_string(100 * farthest_));
    ::testing::Test::RecordProperty("with_host", issued_);
    ::testing::Test::RecordProperty("with_host_within_a_thousandth", issued_near_);
    ::testing::Test::RecordProperty("with_host_farthest_percent",
                                    std::to_string(100 * farthest_issued_));
    EXPECT_GT(drawn_, least / drawn_of());
    if (test::kSanitized) return;  // too few to judge a share of them
    EXPECT_GT(near_, drawn_ * 9 / 10);
  }

 private:
  int drawn_ = 0;
  int near_ = 0;  // within 0.1 %
  double farthest_ = 0;
  int issued_ = 0;  // of those drawn, with their hosts
  int issued_near_ = 0;
  double farthest_issued_ = 0;
};

}  // namespace shardwise::sim
