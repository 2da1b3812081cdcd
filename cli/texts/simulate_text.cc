#include "cli/texts/simulate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "cli/texts/summary_text.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"
#include "simulator/clock/stage_summary.h"
#include "simulator/clock/step_report.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kLabel = 19;
constexpr std::size_t kColumns = kTextWidth - kLabel;
constexpr std::size_t kMostStages = 16;
constexpr std::size_t kMostLive = 8;
// Of the first screen.
constexpr std::size_t kFewStages = 8;
constexpr std::size_t kFewLanes = 5;

/// What a column of the timeline shows.
char letter_of(OpRole role) {
  switch (role) {
    case OpRole::forward:
      return 'F';
    case OpRole::backward:
    case OpRole::backward_input:
      return 'B';
    case OpRole::backward_weight:
      return 'W';
    case OpRole::recompute:
      return 'R';
    case OpRole::optimizer:
    case OpRole::gradient_norm:
    case OpRole::finalize:
      return 'O';
    case OpRole::gather:
    case OpRole::gather_outer:
    case OpRole::gather_updated:
      return 'g';
    case OpRole::reduce:
    case OpRole::reduce_outer:
      return 'r';
    case OpRole::send_forward:
    case OpRole::send_backward:
      return 's';
    case OpRole::receive_forward:
    case OpRole::receive_backward:
      return 'v';
    default:
      return 'c';
  }
}

constexpr char kIdle = '.';

/// How much of a column of a stream that only moves bytes has to be busy for its letter.
constexpr double kLeastMoving = 0.05;

/// One stream of a rank as text: in each column a letter of what ran in it, '.' where it stood
/// still. Where several letters share columns each has its part of them: a letter is due what it
/// ran, and pays with a column. On the compute stream, where idle time is what one looks for, it is
/// a letter as others are; on the others it shows only where hardly anything runs.
std::string lane_text(const sim::StageRunTimes& run, Stream stream) {
  std::array<std::array<double, 128>, kColumns> ran{};
  const auto s = static_cast<std::size_t>(stream);
  const double column = run.length / static_cast<double>(kColumns);
  for (std::uint32_t i = run.work->stream_begin[s]; i < run.work->stream_begin[s + 1]; ++i) {
    const std::uint32_t index = run.work->operations[i].index;
    const char letter = letter_of(run.work->program->operations[index].role);
    const double from = sim::span_of(run, index).met;
    const double to = run.end[index];
    for (auto c = static_cast<std::size_t>(from / column); c < kColumns; ++c) {
      const double begin = static_cast<double>(c) * column;
      if (begin >= to) break;
      ran[c][static_cast<std::size_t>(letter)] +=
          std::min(to, begin + column) - std::max(from, begin);
    }
  }
  std::string text;
  std::array<double, 128> due{};
  for (auto& letters : ran) {
    double shown = std::accumulate(letters.begin(), letters.end(), 0.0);
    if (stream == Stream::compute) {
      letters[kIdle] = std::max(0.0, column - shown);
      shown = column;
    }
    std::size_t next = 0;
    for (std::size_t letter = 0; letter < letters.size(); ++letter) {
      if (letters[letter] <= 0) continue;
      due[letter] += letters[letter];
      if (letters[next] <= 0 || due[letter] > due[next]) next = letter;
    }
    const bool runs = shown > 0 && shown >= kLeastMoving * column;
    if (runs) due[next] -= shown;
    text += runs ? static_cast<char>(next) : kIdle;
  }
  return text;
}

std::size_t slowest_stage(const StepReport& report) {
  const std::vector<StageTimeline>& stages = sim::timeline_of(report).stages;
  return static_cast<std::size_t>(
      std::max_element(stages.begin(), stages.end(),
                       [](const StageTimeline& a, const StageTimeline& b) {
                         return a.computing < b.computing;
                       }) -
      stages.begin());
}

std::string label(std::string_view text) { return fmt::format("{:<{}} ", text, kLabel - 1); }

/// What trials with noise found besides their step times, a line each; nothing without trials.
std::string noise_text(const StepReport& report) {
  const NoiseSpread& noise = sim::timeline_of(report).noise;
  std::string text;
  if (noise.stopped > 0) {
    text += fmt::format(
        "in {} of {} trials the step cannot run: up to {} GPUs have no working switch\n",
        noise.stopped, noise.trials, noise.cut_off_gpus);
  }
  if (noise.goodput > 0) {
    text += fmt::format("goodput {} with failures, checkpoints and restarts\n",
                        format_percent(noise.goodput));
  }
  return text;
}

/// "step 704 ms (p50), 731 ms (p95) in 200 trials with noise; 562 ms without".
std::string step_text(const StepReport& report, bool noisy, bool colour) {
  const NoiseSpread& noise = sim::timeline_of(report).noise;
  const std::string step = format_seconds(report.step_time);
  if (noise.trials == 0) return paint("step " + step, Tone::strong, colour);
  const std::string count =
      fmt::format("{} trial{}", format_count(noise.trials), noise.trials == 1 ? "" : "s");
  if (!noisy) {
    return paint("step " + step, Tone::strong, colour) +
           fmt::format(" in {}, all alike: no noise, set --jitter or --slow-nodes", count);
  }
  const std::string trials = count + " with noise";
  if (noise.stopped == noise.trials) {
    return paint("no trial can run its step", Tone::bad, colour) +
           fmt::format(" ({}); {} undisturbed", trials, step);
  }
  return paint(fmt::format("step {} (p50), {} (p95)", format_seconds(noise.p50),
                           format_seconds(noise.p95)),
               Tone::strong, colour) +
         fmt::format(" in {}; {} undisturbed", trials, step);
}

}  // namespace

std::string simulated_text(const StepReport& report, bool noisy, bool colour) {
  const StageTimeline& stage = sim::timeline_of(report).stages[slowest_stage(report)];
  std::string text = step_text(report, noisy, colour) + "\n" + noise_text(report);
  text +=
      fmt::format("{}computing {}, communication {} hidden, critical path {}\n",
                  noisy ? "undisturbed: " : "", format_percent(stage.computing / report.step_time),
                  format_percent(sim::timeline_of(report).overlap),
                  format_seconds(sim::timeline_of(report).critical_path));
  if (!report.closed_form) return text;
  const Seconds estimated = report.closed_form->step_time;
  return text + fmt::format("`shardwise estimate` says {}; the {} step differs by {}\n",
                            format_seconds(estimated), noisy ? "undisturbed" : "simulated",
                            signed_percent(report.step_time / estimated - 1));
}

StepReport rates_of(const StepReport& report) {
  return with_step(report, sim::timeline_of(report).noise.p50);
}

std::string rates_origin(const StepReport& report) {
  if (sim::timeline_of(report).noise.p50 > Seconds(0)) {
    return fmt::format("p50 of {} trials", format_count(sim::timeline_of(report).noise.trials));
  }
  return std::string(origin_words(report));
}

std::string timeline_text(const sim::Simulation& simulation, bool whole, bool colour) {
  const std::size_t stages = simulation.program.stages.size();
  const std::size_t most = whole ? kMostStages : kFewStages;
  std::string text = "\n";
  for (std::size_t s = 0; s < std::min(stages, most); ++s) {
    text += label(fmt::format("stage {} compute", s));
    text += lane_text(sim::run_times(simulation, s), Stream::compute) + "\n";
  }
  if (stages > most) text += fmt::format("… {} more stages\n", stages - most);
  const std::size_t slowest = slowest_stage(simulation.report);
  const sim::StageRunTimes run = sim::run_times(simulation, slowest);
  std::size_t lanes = 0;
  for (std::size_t s = 1; s < kStreams; ++s) {
    if (run.work->stream_begin[s] == run.work->stream_begin[s + 1]) continue;
    const auto stream = static_cast<Stream>(s);
    const std::string name =
        stages == 1 ? std::string(name_of(stream)) : fmt::format("{} {}", slowest, name_of(stream));
    const std::string lane = lane_text(run, stream);
    if (lane.find_first_not_of('.') == std::string::npos) continue;  // too short to be seen
    if (!whole && ++lanes > kFewLanes) continue;
    text += label(name) + lane + "\n";
  }
  const std::string end = format_seconds(Seconds(run.length));
  text += label("") + "0" + fmt::format("{:>{}}\n", end, kColumns - 1);
  text += paint(
      "F forward  B backward  W weight gradients  R recompute  O optimizer\n"
      "g gather  r reduce  s send  v receive  c copy and others  . idle\n",
      Tone::quiet, colour);
  return text;
}

std::string streams_text(const StepReport& report, bool colour) {
  const StageTimeline& stage = sim::timeline_of(report).stages[slowest_stage(report)];
  Table table({{"stream", Align::left}, {"operations"}, {"busy"}, {"of step"}, {"exposed"}});
  for (const StreamTime& stream : stage.streams) {
    const bool computes = stream.stream == name_of(Stream::compute);
    table.row({stream.stream, format_count(stream.operations), format_seconds(stream.busy),
               format_percent(stream.busy / report.step_time),
               computes ? std::string("-") : format_seconds(stream.exposed)});
  }
  std::string text = fmt::format("\nstage {}\n{}", stage.stage, table.text(colour));
  if (stage.links.empty()) return text;
  Table links(
      {{"link", Align::left}, {"ranks"}, {"a rank sends"}, {"carries"}, {"busy"}, {"of step"}});
  for (const LinkTime& link : stage.links) {
    links.row({link.tier, format_count(link.ranks), format_bytes(link.sent),
               format_bytes(link.carried), format_seconds(link.busy),
               format_percent(link.utilisation)});
  }
  return text + "\n" + links.text(colour);
}

std::string timeline_misfit_text(const StepReport& report, bool colour) {
  const Verdict& v = report.verdict;
  if (v.fit == Fit::does_not_fit) return "";
  Bytes most;
  std::int32_t stage = 0;
  for (const StageTimeline& each : sim::timeline_of(report).stages) {
    const Bytes outside = sim::outside_allocator(report, static_cast<std::size_t>(each.stage));
    for (const MemorySample& sample : each.memory) {
      if (sample.allocated + outside <= most) continue;
      most = sample.allocated + outside;
      stage = each.stage;
    }
  }
  if (most <= v.usable) return "";
  return paint(fmt::format("Does not fit: {} of {} on stage {} of the timeline, {} too much",
                           format_bytes(most), format_bytes(v.usable), stage,
                           format_bytes(most - v.usable)),
               Tone::bad, colour) +
         "\n";
}

std::string peak_text(const StepReport& report, bool whole, bool colour) {
  const StageTimeline* fullest = nullptr;
  Bytes most;
  for (const StageTimeline& stage : sim::timeline_of(report).stages) {
    Bytes allocated;
    for (const MemorySample& sample : stage.memory) {
      allocated = std::max(allocated, sample.allocated);
    }
    if (fullest != nullptr && allocated <= most) continue;
    fullest = &stage;
    most = allocated;
  }
  if (fullest == nullptr || most == Bytes(0)) return "";
  std::string text =
      fmt::format("\n{}\n  on the clock {} are allocated at most, on stage {} at {}\n",
                  memory_sum(memory_numbers(report)), format_bytes(most), fullest->stage,
                  format_seconds(fullest->peak_at));
  if (!whole) return text;
  // Layers of one category together.
  std::array<Bytes, kMemoryCategories> bytes{};
  std::array<std::int64_t, kMemoryCategories> count{};
  for (const LiveBuffers& live : fullest->at_peak) {
    bytes[static_cast<std::size_t>(live.category)] += live.bytes;
    count[static_cast<std::size_t>(live.category)] += live.count;
  }
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c < kMemoryCategories; ++c) {
    if (bytes[c] > Bytes(0)) order.push_back(c);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  order.resize(std::min(order.size(), kMostLive));
  Table table({{"buffers at the peak", Align::left}, {"count"}, {"GiB"}, {"share"}});
  for (const std::size_t c : order) {
    table.row({std::string(name_of(static_cast<MemoryCategory>(c))), format_count(count[c]),
               format_gib(bytes[c]), format_percent(bytes[c] / most)});
  }
  return text + table.text(colour);
}

}  // namespace shardwise::cli
