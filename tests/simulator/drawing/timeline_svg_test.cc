#include "simulator/drawing/timeline_svg.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"
#include "simulator/clock/step_report.h"
#include "simulator/drawing/timeline_windows.h"
#include "tests/simulator/workload/hand_made.h"

namespace shardwise::sim {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

Plan plan_of_stages(std::int32_t pp) {
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
  const std::string svg = picture(plan_of_stages(4));
  EXPECT_EQ(svg.substr(0, 5), "<svg ");
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  // 8 micro-batches forward and backward on 4 stages.
  EXPECT_EQ(count(svg, "class=\"number "), 8U * 2 * 4);
  for (const char* part : {"stage 0", "stage 3", "forward", "backward", "idle", "memory"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
}

TEST(TimelineSvg, DrawsNoBlockOutsideItsLane) {
  const std::string svg = picture(plan_of_stages(2));
  const std::string key = "<rect x=\"";
  for (std::size_t at = svg.find(key); at != std::string::npos; at = svg.find(key, at + 1)) {
    const double x = std::strtod(svg.c_str() + at + key.size(), nullptr);
    const std::size_t width = svg.find("width=\"", at) + 7;
    EXPECT_GE(x, 112 - 0.01);
    EXPECT_LE(x + std::strtod(svg.c_str() + width, nullptr), 884 + 0.5);
  }
}

TEST(TimelineSvg, EscapesWhatANameMayHold) {
  Plan plan = plan_of_stages(1);
  plan.model.name = "<a & b>";
  const std::string svg = picture(plan);
  EXPECT_THAT(svg, HasSubstr("&lt;a &amp; b&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<a")));
}

/// A text of a picture, with the box that it fills if a character is 0.58 of its height wide.
struct Label {
  std::string words;
  std::string style;  // its first class
  double left = 0;
  double right = 0;
  double y = 0;
  double size = 0;
};

std::vector<Label> labels(const std::string& svg) {
  const std::map<std::string, double> sizes = {{"title", 17},  {"lane", 13},  {"small", 11},
                                               {"number", 11}, {"scale", 11}, {"head", 11},
                                               {"over", 11}};
  const std::regex form("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" class=\"([a-z]+)[^>]*>([^<]*)<");
  std::vector<Label> found;
  for (std::sregex_iterator at(svg.begin(), svg.end(), form); at != std::sregex_iterator(); ++at) {
    Label label = {(*at)[4], (*at)[3], 0, 0, std::stod((*at)[2]), 12};
    if (const auto size = sizes.find(label.style); size != sizes.end()) label.size = size->second;
    const double width = 0.58 * label.size * static_cast<double>(label.words.size());
    const bool middle = label.style == "number" || label.style == "tick";
    const bool ends = label.style == "lane" || label.style == "small" || label.style == "value" ||
                      label.style == "head";
    label.left = std::stod((*at)[1]) - (ends ? width : middle ? width / 2 : 0);
    label.right = label.left + width;
    found.push_back(label);
  }
  return found;
}

std::vector<std::string> words_in_style(const std::vector<Label>& labels,
                                        const std::string& style) {
  std::vector<std::string> words;
  for (const Label& label : labels) {
    if (label.style == style) words.push_back(label.words);
  }
  return words;
}

TEST(TimelineSvg, DrawsLittleMemoryAsHighAsTheLane) {
  Plan plan = plan_of_stages(1);
  EXPECT_THAT(timeline_svg(plan, simulate(plan)), testing::HasSubstr("class=\"limit\""));
  plan.cluster.gpu.hbm_bytes = 1_GiB * 8192;
  const Simulation made = simulate(plan);
  const std::string drawn = timeline_svg(plan, made);
  EXPECT_THAT(drawn,
              testing::HasSubstr("usable " + format_bytes(made.report.verdict.usable) + ", above"));
  EXPECT_THAT(drawn, testing::Not(testing::HasSubstr("class=\"limit\"")));
}

// The report's bubble is that of the stage which computes longest.
TEST(TimelineSvg, HasTheReportsSharesBesideEachStage) {
  for (const std::int32_t pp : {1, 4}) {
    const Plan plan = plan_of_stages(pp);
    const Simulation made = simulate(plan);
    const std::vector<StageTimeline>& stages = made.report.timeline->stages;
    const std::vector<std::string> shares =
        words_in_style(labels(timeline_svg(plan, made)), "value");
    // Stages of one pipeline differ by the head: the others wait for the last.
    const std::size_t columns = pp > 1 ? 3 : 2;
    ASSERT_EQ(shares.size(), columns * stages.size());
    std::size_t slowest = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      EXPECT_EQ(shares[columns * s], format_percent(stages[s].idle / made.report.step_time));
      if (stages[s].computing > stages[slowest].computing) slowest = s;
    }
    EXPECT_EQ(shares[columns * slowest + 1],
              format_percent(made.report.time.bubble / made.report.step_time));
    for (std::size_t s = 0; columns == 3 && s < stages.size(); ++s) {
      const Seconds more = stages[slowest].computing - stages[s].computing;
      EXPECT_EQ(shares[columns * s + 2], format_percent(more / made.report.step_time));
    }
  }
}

/// GPipe of 4 stages and 8 micro-batches of 1 s and 2 s: 33 s. Stage 0 holds 10 GiB, and 30 more
/// during the step's first operation.
Simulation by_hand(Bytes usable) {
  Simulation made;
  HandMade hand = gpipe({});
  hand.buffer(0, (10_GiB).value(), MemoryCategory::weights, /*resident=*/true);
  const std::uint32_t passing = hand.buffer(0, (30_GiB).value());
  hand.allocates(0, 0, {passing});
  hand.frees(0, 0, {passing});
  made.program = std::move(hand.program);
  made.program.num_microbatches = 8;
  made.prices = std::move(hand.prices);
  made.work = representatives(made.program, made.prices);
  made.timeline = run_alone(made.work);
  made.met = meeting_times(made.work, made.timeline);
  StepTimeline timeline;
  for (std::size_t s = 0; s < made.program.stages.size(); ++s) {
    const StageRunTimes run = run_times(made, s);
    made.memory.push_back(
        memory_over_time(made.program.stages[s], run.start, run.end, AllocatorKind::arena));
    StageTimeline stage;
    stage.computing = Seconds(8 * 3);
    stage.idle = Seconds(made.timeline.length()) - stage.computing;
    timeline.stages.push_back(stage);
  }
  made.report.timeline = timeline;
  made.report.step_time = Seconds(made.timeline.length());
  made.report.stages.resize(made.program.stages.size());
  for (StageMemory& stage : made.report.stages) {
    stage[MemoryPhase::steady_forward_backward][MemoryCategory::runtime_context] = (10_GiB).value();
  }
  made.report.verdict.usable = usable;
  return made;
}

/// The y of the limit's line.
double limit_of(const std::string& svg) {
  std::smatch found;
  const std::regex form("<path d=\"M112.0 ([0-9.]+)H889.0\" class=\"limit\"/>");
  return std::regex_search(svg, found, form) ? std::stod(found[1]) : -1;
}

// (p - 1) / (m + p - 1) of Huang et al., "GPipe" (arXiv:1811.06965), section 2.3.
TEST(TimelineSvg, HasTheBubbleOfGPipeByHand) {
  const Plan plan = plan_of_stages(4);
  const Simulation made = by_hand(80_GiB);
  ASSERT_EQ(made.timeline.length(), 33);
  const std::vector<Label> found = labels(timeline_svg(plan, made));
  EXPECT_THAT(words_in_style(found, "value"), Each(format_percent(3.0 / 11)));
  EXPECT_THAT(words_in_style(found, "tick"),
              ElementsAre("0", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"));
  // 772 pixels for 33 s.
  EXPECT_THAT(timeline_svg(plan, made), HasSubstr("<text x=\"229.0\"")) << "5 s";
}

// The lane is 90 pixels high; its floor is where the tick of 0 is.
TEST(TimelineSvg, DrawsTheLimitAtUsableMemory) {
  const Plan plan = plan_of_stages(4);
  const auto floor_of = [](const std::vector<Label>& found) {
    for (const Label& label : found) {
      if (label.style == "scale" && label.words == "0") return label.y - 4;
    }
    return -1.0;
  };
  // 50 GiB in use of 80: the limit is at the top of the lane.
  std::string svg = timeline_svg(plan, by_hand(80_GiB));
  std::vector<Label> found = labels(svg);
  const double floor = floor_of(found);
  EXPECT_DOUBLE_EQ(limit_of(svg), floor - 90);
  EXPECT_THAT(words_in_style(found, "over"), ElementsAre("usable 80.0 GiB"));
  // No tick at 80 GiB under the limit's label.
  EXPECT_THAT(words_in_style(found, "scale"), ElementsAre("0", "20 GiB", "40 GiB", "60 GiB"));
  EXPECT_THAT(words_in_style(found, "key"),
              IsSupersetOf({"allocated, peak 40.0 GiB", "outside the allocator 10.0 GiB"}));
  EXPECT_THAT(svg, Not(HasSubstr("slack"))) << "an arena reserves what it allocates";
  // Context below, then 10 GiB resident and 30 more in the first second.
  EXPECT_THAT(svg, HasSubstr(fmt::format("H112.0V{:.1f}H135.4V{:.1f}H884.0V{:.1f}Z",
                                         floor - 90.0 * 50 / 80, floor - 90.0 * 20 / 80, floor)));
  // 50 GiB in use of 40: the lane ends at 50, the limit is at four fifths of it.
  svg = timeline_svg(plan, by_hand(40_GiB));
  found = labels(svg);
  EXPECT_DOUBLE_EQ(limit_of(svg), floor_of(found) - 72);
  EXPECT_THAT(words_in_style(found, "over"), ElementsAre("usable 40.0 GiB"));
  EXPECT_THAT(words_in_style(found, "scale"), ElementsAre("0", "20 GiB"));
}

TEST(TimelineSvg, LetsNoLabelsMeet) {
  Plan interleaved = plan_of_stages(8);
  interleaved.layout.vpp = 2;
  interleaved.job.global_batch_size = 32;
  Plan sharded = plan_of_stages(1);
  sharded.engine = *find_engine("fsdp2");
  sharded.layout = {};
  sharded.layout.dp_shard = 8;
  sharded.layout.zero_stage = 3;
  Plan cut = plan_of_stages(4);
  cut.job.global_batch_size = 512;
  for (const Plan& plan : {plan_of_stages(1), plan_of_stages(2), plan_of_stages(4),
                           plan_of_stages(20), interleaved, sharded, cut}) {
    const std::string svg = picture(plan);
    const double width = std::strtod(svg.c_str() + svg.find("width=\"") + 7, nullptr);
    EXPECT_LT(svg.size(), 300'000U);
    const std::vector<Label> found = labels(svg);
    EXPECT_EQ(found.size(), count(svg, "<text "));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Label& a = found[i];
      EXPECT_GE(a.left, 0) << a.words;
      EXPECT_LE(a.right, width) << a.words;
      for (std::size_t k = i + 1; k < found.size(); ++k) {
        const Label& b = found[k];
        const bool beside = a.right <= b.left || b.right <= a.left;
        EXPECT_TRUE(beside || std::abs(a.y - b.y) >= std::min(a.size, b.size))
            << a.words << " and " << b.words;
      }
    }
  }
}

// 512 micro-batches on one scale were a smear.
TEST(TimelineSvg, DrawsWindowsOfALongStep) {
  Plan plan = plan_of_stages(4);
  plan.job.global_batch_size = 512;
  const Simulation made = simulate(plan);
  const std::string svg = timeline_svg(plan, made);
  EXPECT_TRUE(std::regex_search(svg, std::regex("Drawn are the first [^<]*, [^<]* of the middle")));
  EXPECT_GT(count(svg, ">0<"), 4U) << "numbers of the first micro-batch";
  EXPECT_EQ(count(picture(plan_of_stages(4)), "Drawn are the first"), 0U);

  const std::vector<TimeWindow> windows = drawn_windows(plan, made, 100, 800);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows.front().from, 0);
  EXPECT_EQ(windows.front().left, 100);
  EXPECT_DOUBLE_EQ(windows.back().to, made.timeline.length());
  EXPECT_DOUBLE_EQ(windows.back().right, 900);
  const auto scale = [](const TimeWindow& w) { return (w.right - w.left) / (w.to - w.from); };
  for (std::size_t i = 1; i < windows.size(); ++i) {
    EXPECT_LT(windows[i - 1].to, windows[i].from);
    EXPECT_LT(windows[i - 1].right, windows[i].left);
    EXPECT_NEAR(scale(windows[i]) / scale(windows[0]), 1, 1e-9);
  }
  // A pair of passes is wide enough to be told from the next.
  EXPECT_GE(scale(windows[0]) * made.timeline.length() / 512, 8);
}

TEST(TimelineSvg, NamesScheduleExpertsAndFainterBlocks) {
  Plan plan = plan_of_stages(4);
  EXPECT_THAT(picture(plan), HasSubstr("pp 4 by one_f_one_b, dp_shard"));
  plan.engine = *find_engine("shardwise");
  plan.layout.schedule = PipelineSchedule::dualpipe;
  const std::string svg = picture(plan);
  EXPECT_THAT(svg, HasSubstr("pp 4 by dualpipe"));
  EXPECT_THAT(svg, HasSubstr("Fainter blocks are micro-batches that go the other way"));
}

// The limit's label at 79.2 GiB took the place of 100 GiB's.
TEST(TimelineSvg, KeepsTheMarksBesideTheLimit) {
  const Plan plan = plan_of_stages(4);
  // 50 GiB are in use; 22 are 3.6 pixels above the mark of 20, 24 are 7.2.
  EXPECT_THAT(words_in_style(labels(timeline_svg(plan, by_hand(22_GiB))), "scale"),
              ElementsAre("0", "40 GiB"));
  EXPECT_THAT(words_in_style(labels(timeline_svg(plan, by_hand(24_GiB))), "scale"),
              ElementsAre("0", "20 GiB", "40 GiB"));
}

TEST(TimelineSvg, TellsThatStagesAreLeftOut) {
  EXPECT_THAT(picture(plan_of_stages(20)), HasSubstr("The first 16 of 20 stages are drawn."));
  EXPECT_THAT(picture(plan_of_stages(16)), Not(HasSubstr("stages are drawn")));
}

TEST(TimelineSvg, IsTheSameTwice) {
  EXPECT_EQ(picture(plan_of_stages(2)), picture(plan_of_stages(2)));
}

}  // namespace
}  // namespace shardwise::sim
