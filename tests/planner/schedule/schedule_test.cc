#include "planner/schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "planner/schedule/held_passes.h"
#include "planner/schedule/stages.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/schedule_facts.h"
#include "tests/support/pipeline_ways.h"

namespace shardwise::test {
namespace {

/// "F0 B0 i1 w1 F2'": the second chunk is marked.
std::string order_text(const std::vector<PipelinePass>& order) {
  std::string text;
  for (const PipelinePass& pass : order) {
    constexpr std::string_view kLetters = "FBiw";
    if (!text.empty()) text += ' ';
    text += kLetters[static_cast<std::size_t>(pass.part)];
    text += std::to_string(pass.microbatch);
    text += std::string(static_cast<std::size_t>(pass.chunk), '\'');
  }
  return text;
}

// Figure 4, top, of Narayanan et al. (arXiv:2104.04473): four devices, eight micro-batches.
TEST(PassOrder, IsThePapersOneForwardOneBackward) {
  const Layout layout = pipeline_layout(PipelineSchedule::one_f_one_b, 4);
  EXPECT_EQ(order_text(pass_order(layout, 0, 8)),
            "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  EXPECT_EQ(order_text(pass_order(layout, 2, 8)),
            "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7");
  EXPECT_EQ(order_text(pass_order(layout, 3, 8)),
            "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

// Figure 4, bottom: two chunks a device. Device 1 warms up with 2 (4 - 1) + 4 = 10 passes.
TEST(PassOrder, IsThePapersInterleaving) {
  const Layout layout = pipeline_layout(PipelineSchedule::one_f_one_b, 4, 2);
  EXPECT_EQ(order_text(pass_order(layout, 0, 8)).substr(0, 63),
            "F0 F1 F2 F3 F0' F1' F2' F3' F4 F5 F6 B0' F7 B1' F4' B2' F5' B3'");
  EXPECT_EQ(order_text(pass_order(layout, 3, 8)).substr(0, 39),
            "F0 F1 F2 F3 F0' B0' F1' B1' F2' B2' F3'");
}

// Figure 3 of Qi et al. (arXiv:2401.10241), rows of devices 1 and 4.
TEST(PassOrder, IsThePapersZeroBubble) {
  const Layout h1 = pipeline_layout(PipelineSchedule::zb_h1, 4);
  EXPECT_EQ(order_text(pass_order(h1, 0, 8)).substr(0, 38),
            "F0 F1 F2 F3 i0 w0 F4 i1 w1 F5 i2 w2 F6");
  EXPECT_EQ(order_text(pass_order(h1, 3, 8)).substr(0, 35), "F0 i0 F1 i1 F2 i2 F3 i3 w0 F4 i4 w1");
  const Layout h2 = pipeline_layout(PipelineSchedule::zb_h2, 4);
  EXPECT_EQ(order_text(pass_order(h2, 0, 8)).substr(0, 32), "F0 F1 F2 F3 F4 F5 F6 i0 w0 F7 i1");
  EXPECT_EQ(order_text(pass_order(h2, 3, 8)).substr(0, 20), "F0 i0 F1 i1 F2 i2 F3");
}

TEST(PassOrder, RunsAllForwardPassesFirstInGpipe) {
  EXPECT_EQ(order_text(pass_order(pipeline_layout(PipelineSchedule::gpipe, 2), 0, 3)),
            "F0 F1 F2 B0 B1 B2");
}

// Lamy-Poirier (arXiv:2211.05953): all micro-batches through one chunk, then through the next.
TEST(PassOrder, GoesBreadthFirstThroughTheChunks) {
  EXPECT_EQ(order_text(pass_order(pipeline_layout(PipelineSchedule::looped_bfs, 2, 2), 0, 3)),
            "F0 F1 F2 F0' F1' F2' B0' B1' B2' B0 B1 B2");
}

/// Seconds of a chunk's passes.
struct ChunkPace {
  double forward = 1;
  double input = 1;
  double weight = 1;
};
double seconds_of(LayerPart part, const ChunkPace& pace) {
  if (part == LayerPart::forward) return pace.forward;
  if (part == LayerPart::backward_input) return pace.input;
  if (part == LayerPart::backward_weight) return pace.weight;
  return pace.input + pace.weight;
}

/// When the stages run their passes, where messages take no time.
struct Timeline {
  double end = 0;
  std::vector<double> first;  // start of a stage's first pass
  std::vector<double> last;   // end of its last
};

/// Two copies of the model do not hand each other anything.
bool ends_between(const Layout& layout, std::int32_t a, std::int32_t b) {
  return copies_model(layout) && a / layout.pp != b / layout.pp;
}

Timeline run(const Layout& layout, std::int32_t microbatches, const ChunkPace& pace = {}) {
  const std::int32_t chunks = layout.pp * chunks_of_stage(layout);
  std::vector<std::vector<PipelinePass>> orders;
  for (std::int32_t s = 0; s < layout.pp; ++s) {
    orders.push_back(pass_order(layout, s, microbatches));
  }
  std::vector<std::vector<std::int32_t>> numbers(static_cast<std::size_t>(layout.pp));
  for (std::int32_t c = 0; c < chunks; ++c) {
    numbers[static_cast<std::size_t>(stage_of_chunk(layout, c))].push_back(c);
  }
  std::map<std::tuple<bool, std::int32_t, std::int32_t>, double> done;  // forward, chunk, mb
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<double> now(orders.size(), 0);
  Timeline result;
  result.first.assign(orders.size(), -1);
  const auto number = [&](std::size_t s, const PipelinePass& pass) {
    return numbers[s][static_cast<std::size_t>(pass.chunk)];
  };
  // From when on a pass may run; below zero, not yet.
  const auto ready = [&](std::size_t s, const PipelinePass& pass) {
    if (pass.part == LayerPart::backward_weight) return 0.0;
    const std::int32_t c = number(s, pass);
    const bool forward = pass.part == LayerPart::forward;
    const std::int32_t from = forward ? c - 1 : c + 1;
    double when = 0;
    if (from >= 0 && from < chunks && !ends_between(layout, c, from)) {
      const auto handed = done.find({forward, from, pass.microbatch});
      if (handed == done.end()) return -1.0;
      when = handed->second;
    }
    if (!forward && !done.contains({true, c, pass.microbatch})) return -1.0;
    return when;
  };
  const auto advance = [&](std::size_t s) {
    const std::size_t count = orders[s][next[s]].with_next ? 2 : 1;
    double start = now[s];
    for (std::size_t i = 0; i < count; ++i) {
      const double when = ready(s, orders[s][next[s] + i]);
      if (when < 0) return false;
      start = std::max(start, when);
    }
    if (result.first[s] < 0) result.first[s] = start;
    now[s] = start;
    for (std::size_t i = 0; i < count; ++i) {
      now[s] += seconds_of(orders[s][next[s] + i].part, pace);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const PipelinePass& pass = orders[s][next[s]++];
      if (pass.part == LayerPart::backward_weight) continue;
      done[{pass.part == LayerPart::forward, number(s, pass), pass.microbatch}] = now[s];
    }
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < orders.size(); ++s) {
      while (next[s] < orders[s].size() && advance(s)) moved = true;
    }
  }
  for (std::size_t s = 0; s < orders.size(); ++s) EXPECT_EQ(next[s], orders[s].size()) << s;
  result.last = now;
  result.end = *std::ranges::max_element(now);
  return result;
}

TEST(PassOrder, RunsEveryPassOnceAndHoldsWhatTheLedgerCounts) {
  for (const Way& way : all_ways({2, 3})) {
    for (const std::int32_t pp : {2, 4, 6, 8}) {
      for (const std::int32_t m : {2 * pp, 3 * pp, 4 * pp}) {
        const Layout layout = pipeline_layout(way.schedule, pp, way.vpp);
        for (std::int32_t s = 0; s < pp; ++s) {
          std::map<std::tuple<int, std::int16_t, std::int32_t>, int> seen;
          std::int64_t held = 0;
          std::int64_t most = 0;
          for (const PipelinePass& pass : pass_order(layout, s, m)) {
            ++seen[{static_cast<int>(pass.part), pass.chunk, pass.microbatch}];
            if (pass.part == LayerPart::forward) most = std::max(most, ++held);
            // Until its weight gradients are there.
            held -= pass.part == LayerPart::backward || pass.part == LayerPart::backward_weight;
          }
          for (std::int32_t chunk = 0; chunk < chunks_of_stage(layout); ++chunk) {
            for (std::int32_t i = 0; i < m; ++i) {
              // Each copy runs the half of the micro-batches that enters at its end.
              if (copies_model(layout) && (i < m / 2) != (chunk == 0)) {
                EXPECT_EQ((seen[{0, chunk, i}]), 0);
                continue;
              }
              const int whole = seen[{1, chunk, i}];
              EXPECT_EQ((seen[{0, chunk, i}]), 1);
              EXPECT_EQ((whole + seen[{2, chunk, i}]), 1);
              EXPECT_EQ((seen[{2, chunk, i}]), (seen[{3, chunk, i}]));
            }
          }
          EXPECT_EQ(held, 0);
          const InFlight flight = micro_batches_in_flight(layout, s, m);
          EXPECT_EQ(most, flight.held)
              << name_of(way.schedule) << " pp " << pp << " m " << m << " stage " << s;
        }
      }
    }
  }
}

// With f = b = w = 1: 1F1B and GPipe idle (p - 1)(f + b + w), interleaving 1/v of it, ZB-H1
// (p - 1)(f + b - w), all as in their papers.
TEST(PassOrder, HasThePapersBubble) {
  for (const std::int32_t p : {2, 4, 8}) {
    const std::int32_t m = 3 * p;
    EXPECT_EQ(run(pipeline_layout(PipelineSchedule::gpipe, p), m).end, 3.0 * (m + p - 1));
    EXPECT_EQ(run(pipeline_layout(PipelineSchedule::one_f_one_b, p), m).end, 3.0 * (m + p - 1));
    for (const std::int32_t v : {2, 4}) {
      // Chunks of 1/v of a stage.
      EXPECT_EQ(run(pipeline_layout(PipelineSchedule::one_f_one_b, p, v), m).end,
                3.0 * (m * v + p - 1));
      const Layout breadth_first = pipeline_layout(PipelineSchedule::looped_bfs, p, v);
      EXPECT_EQ(run(breadth_first, m).end, 3.0 * (m * v + p - 1));
      // Fewer micro-batches than stages: each further chunk waits for the one before.
      EXPECT_EQ(run(breadth_first, p - 1).end, 3.0 * ((p - 1) * v + p - 1 + (v - 1)));
    }
    EXPECT_EQ(run(pipeline_layout(PipelineSchedule::zb_h1, p), m).end, 3.0 * m + (p - 1));
  }
}

// DeepSeek-V3 (arXiv:2412.19437), table 2: (p/2 - 1)(F&B + B - 3 W), where the pair of a forward
// and a backward pass takes F&B and ends as one; nothing runs beside anything here, so that is
// F + B, and input gradients as long as forward passes, as in figure 5.
// deepseek-ai/DualPipe:README.md has the same for half as many ranks of two stages each.
TEST(PassOrder, HasThePapersBubbleOfDualPipe) {
  for (const ChunkPace& pace : {ChunkPace{1, 1, 1}, ChunkPace{2, 2, 1}, ChunkPace{4, 4, 3}}) {
    const double b = pace.input + pace.weight;
    const double each = pace.forward + b;
    for (const std::int32_t p : {2, 4, 6, 8, 16}) {
      for (const std::int32_t m : {2 * p, 4 * p}) {
        const double bubble = (p / 2.0 - 1) * (each + b - 3 * pace.weight);
        EXPECT_EQ(run(pipeline_layout(PipelineSchedule::dualpipe, p), m, pace).end,
                  m * each + bubble)
            << p << " " << m;
        EXPECT_EQ(run(pipeline_layout(PipelineSchedule::dualpipe_v, p / 2), m, pace).end,
                  m * 2 * each + bubble)
            << p << " " << m;
      }
    }
  }
}

// A stage that has begun never waits: what is left is the stagger of the stages, which the next
// step fills (section 4 of the paper).
TEST(PassOrder, LeavesNoBubbleWithinAStageInZbH2) {
  for (const std::int32_t p : {2, 4, 8}) {
    const std::int32_t m = 3 * p;
    const Timeline h2 = run(pipeline_layout(PipelineSchedule::zb_h2, p), m);
    for (std::size_t s = 0; s < h2.first.size(); ++s) {
      EXPECT_EQ(h2.last[s] - h2.first[s], 3.0 * m) << s;
    }
    const Timeline v = run(pipeline_layout(PipelineSchedule::zb_v, p), m);
    for (std::size_t s = 0; s < v.first.size(); ++s) {
      EXPECT_EQ(v.last[s] - v.first[s], 6.0 * m) << "ZB-V " << s;
    }
  }
}

}  // namespace
}  // namespace shardwise::test
