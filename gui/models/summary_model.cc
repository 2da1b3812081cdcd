#include "gui/models/summary_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "planner/spec/format.h"
#include "planner/spec/names.h"
#include "planner/spec/signed_format.h"
#include "simulator/tiles.h"

namespace shardwise::view {
namespace {

/// "56.5 s" as a number and its unit.
std::pair<std::string, std::string> split(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return {text, ""};
  return {text.substr(0, space), text.substr(space + 1)};
}

/// Where a click leads, and the name in probes and commands.
struct Place {
  std::string_view tile;  // sim::Tile::id
  std::string_view id;
  std::string_view command;
};
constexpr Place kPlaces[] = {{"step_time", "step", "view.timeline"},
                             {"mfu", "mfu", "details.show mfu"},
                             {"tokens_per_s", "tokens", "view.scaling"},
                             {"peak_memory", "memory", "view.memory"},
                             {"bubble", "bubble", "view.timeline"},
                             {"exposed", "exposed", "view.timeline"},
                             {"cost", "cost", "view.scaling"}};

/// Tones of shares that people would rather have small.
Tone loss_tone(double share) {
  constexpr double kMuch = 0.1;
  constexpr double kTooMuch = 0.3;
  if (share < kMuch) return Tone::plain;
  return share < kTooMuch ? Tone::warning : Tone::bad;
}

}  // namespace

std::vector<Tile> summary_tiles(const Plan& plan, const StepReport& report, const Compared* other) {
  std::vector<Tile> tiles;
  for (const sim::Tile& each :
       sim::tiles(plan, report, other != nullptr ? &other->report : nullptr)) {
    const Place& place = *std::ranges::find(kPlaces, each.id, &Place::tile);
    if (place.id == "cost" && report.dollars_per_1e9_tokens <= 0) continue;
    auto [value, unit] = split(each.value);
    if (place.id == "memory" || place.id == "cost") unit = each.note;
    Tone tone = each.tone;
    if (place.id == "bubble") tone = loss_tone(report.time.bubble / report.step_time);
    if (place.id == "exposed") {
      tone = loss_tone(sim::exposed_communication(report) / report.step_time);
    }
    tiles.push_back({std::string(place.id), std::string(each.label), std::move(value),
                     std::move(unit), tone, std::string(place.command), ""});
    // A trace has a step and nothing else.
    const bool told = other != nullptr && (other->whole() || place.id == "step");
    if (told && !each.measured.empty()) {
      // The first one says what the others are, too.
      tiles.back().beside = fmt::format("{}{}, {}", place.id == "step" ? other->origin + " " : "",
                                        each.measured, each.error);
    }
  }
  return tiles;
}

void put_run(std::vector<Tile>& tiles, const MetricsState& metrics, Seconds predicted) {
  const Seconds median = median_time(metrics.steps);
  if (median <= Seconds(0)) return;
  const auto step = std::ranges::find(tiles, "step", &Tile::id);
  if (step == tiles.end()) return;
  step->beside =
      fmt::format("run {}, {}", format_seconds(median), signed_percent(predicted / median - 1));
}

std::string title_text(const Plan& plan) {
  return fmt::format("{} on {} x {}", plan.model.name, format_count(plan.layout.world()),
                     plan.cluster.name);
}

std::string question_text(const Plan& plan) {
  return fmt::format("{}, batch {} x {} tokens", plan.engine.name,
                     format_count(plan.job.global_batch_size),
                     format_count(plan.job.sequence_length));
}

std::string layout_text(const Layout& layout) {
  std::string text = fmt::format("tp{}", layout.tp);
  const auto degree = [&](const char* name, std::int64_t ways) {
    if (ways > 1) text += fmt::format(" {}{}", name, ways);
  };
  degree("cp", layout.cp);
  text += fmt::format(" pp{}", layout.pp);
  degree("vpp", layout.vpp);
  degree("ep", layout.ep);
  text += fmt::format(" dp{}", layout.dp());
  text += fmt::format(" zero-{} mbs{}", int{layout.zero_stage}, layout.micro_batch_size);
  text += layout.recompute == Recompute::none
              ? " no recompute"
              : fmt::format(" {} recompute", name_of(layout.recompute));
  return text;
}

}  // namespace shardwise::view
