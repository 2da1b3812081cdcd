#include "simulator/timeline_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/cluster_reader.h"

namespace shardwise::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

Plan pipelined(std::int32_t pp) {
  Plan plan;
  plan.model = *load_model("llama-3.1-70b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), std::int64_t{8} * pp);
  plan.engine = *find_engine("megatron_ddp");
  plan.layout.tp = 8;
  plan.layout.pp = pp;
  plan.job.global_batch_size = 8;
  return plan;
}

std::string picture(const Plan& plan) { return timeline_svg(plan, simulate(plan)); }

/// How often `part` is in `text`.
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(TimelineSvg, NumbersEachMicroBatchOnEachStage) {
  const std::string svg = picture(pipelined(4));
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  // 8 micro-batches forward and backward on 4 stages.
  EXPECT_EQ(count(svg, "class=\"number\""), 8U * 2 * 4);
  for (const char* part : {"stage 0", "stage 3", "forward", "backward", "idle", "memory"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

TEST(TimelineSvg, DrawsNoBlockOutsideItsLane) {
  const std::string svg = picture(pipelined(2));
  const std::string key = "<rect x=\"";
  for (std::size_t at = svg.find(key); at != std::string::npos; at = svg.find(key, at + 1)) {
    const double x = std::strtod(svg.c_str() + at + key.size(), nullptr);
    const std::size_t width = svg.find("width=\"", at) + 7;
    EXPECT_GE(x, 118 - 0.01);
    EXPECT_LE(x + std::strtod(svg.c_str() + width, nullptr), 1160 + 0.5);
  }
}

TEST(TimelineSvg, EscapesWhatANameMayHold) {
  Plan plan = pipelined(1);
  plan.model.name = "<a & b>";
  const std::string svg = picture(plan);
  EXPECT_THAT(svg, HasSubstr("&lt;a &amp; b>"));
  EXPECT_THAT(svg, Not(HasSubstr("<a")));
}

TEST(TimelineSvg, IsTheSameTwice) { EXPECT_EQ(picture(pipelined(2)), picture(pipelined(2))); }

}  // namespace
}  // namespace shardwise::sim
