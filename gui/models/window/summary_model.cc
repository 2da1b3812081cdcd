#include "gui/models/window/summary_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "planner/estimate/interval_table.h"
#include "planner/spec/report/interval_words.h"
#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/comparison/tiles.h"

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

/// What a tile is of a report, and how a change of it reads.
struct Quantity {
  std::string_view id;
  double (*number)(const StepReport& report);
  std::string (*text)(double size);
  bool less_is_better = true;
};
constexpr Quantity kQuantities[] = {
    {"step", [](const StepReport& r) { return r.step_time.value(); },
     [](double size) { return format_seconds(Seconds(size)); }},
    {"mfu", [](const StepReport& r) { return r.mfu; }, format_percent, false},
    {"tokens", [](const StepReport& r) { return r.tokens_per_s; }, format_scaled, false},
    {"memory", [](const StepReport& r) { return static_cast<double>(r.verdict.point.value()); },
     [](double size) { return format_bytes(Bytes(std::llround(size))); }},
    {"bubble", [](const StepReport& r) { return r.time.bubble / r.step_time; }, format_percent},
    {"exposed", [](const StepReport& r) { return sim::exposed_communication(r) / r.step_time; },
     format_percent},
    {"cost", [](const StepReport& r) { return r.dollars_per_1e9_tokens; }, format_dollars}};

void compare(const StepReport& report, const StepReport& baseline, Tile& tile) {
  const Quantity& quantity = *std::ranges::find(kQuantities, tile.id, &Quantity::id);
  const double more = quantity.number(report) - quantity.number(baseline);
  if (more == 0) return;
  tile.change = (more < 0 ? "-" : "+") + quantity.text(std::abs(more));
  tile.change_tone = (more < 0) == quantity.less_is_better ? Tone::good : Tone::bad;
}

}  // namespace

std::optional<Tile> error_tile(std::span<const PublishedFigure> nearest) {
  const TypicalErrors errors = typical_errors(nearest);
  if (!errors.time && !errors.memory) return std::nullopt;
  Tile tile{"error", "typical error", "", "", Tone::plain, "details.show published", "",
            "",      Tone::plain,     ""};
  auto [value, unit] = split(format_percent(errors.time ? *errors.time : *errors.memory));
  tile.value = std::move(value);
  tile.unit = unit + (errors.time ? " time" : " memory");
  tile.brief = tile.unit;
  if (errors.time && errors.memory) {
    tile.unit += fmt::format(", {} memory", format_percent(*errors.memory));
  }
  return tile;
}

std::string tile_intervals(const Tile& tile, const Plan& plan, const StepReport& report) {
  if (tile.id != "step" && tile.id != "memory") return "";
  const std::string line = intervals_line(report, report_intervals(plan.engine, plan.cluster));
  if (tile.id != "memory" || report.stages.empty()) return line;
  return memory_sum(memory_numbers(report)) + (line.empty() ? "" : "\n" + line);
}

std::string figure_text(const PublishedFigure& figure) {
  std::string text = fmt::format("{} on {} x {}, {}", figure.model, format_count(figure.gpus),
                                 figure.gpu, figure.framework);
  const char* before = ": ";
  for (const auto& [what, error] :
       {std::pair("time", figure.time_error), std::pair("memory", figure.memory_error)}) {
    if (!error) continue;
    text += fmt::format("{}{} {}", before, what, signed_percent(*error));
    before = ", ";
  }
  return text;
}

std::vector<Tile> summary_tiles(const Plan& plan, const StepReport& report, const Compared* other,
                                const StepReport* baseline) {
  std::vector<Tile> tiles;
  for (const sim::Tile& each :
       sim::tiles(plan, report, other != nullptr ? &other->report : nullptr)) {
    const Place& place = *std::ranges::find(kPlaces, each.id, &Place::tile);
    if (place.id == "cost" && report.dollars_per_1e9_tokens <= 0) continue;
    auto [value, unit] = split(each.value);
    if (place.id == "memory") unit += " " + each.note;
    if (place.id == "cost") unit = each.note;
    Tone tone = each.tone;
    if (place.id == "bubble") tone = loss_tone(report.time.bubble / report.step_time);
    if (place.id == "exposed") {
      tone = loss_tone(sim::exposed_communication(report) / report.step_time);
    }
    tiles.push_back({std::string(place.id), std::string(each.label), std::move(value),
                     std::move(unit), tone, std::string(place.command), "", "", Tone::plain,
                     place.id == "cost" ? "per 1e9" : ""});
    // A trace has a step and nothing else.
    const bool told = other != nullptr && (other->whole() || place.id == "step");
    if (told && !each.measured.empty()) {
      // The first one says what the others are, too.
      tiles.back().beside = fmt::format("{}{}, {}", place.id == "step" ? other->origin + " " : "",
                                        each.measured, each.error);
    }
    if (baseline != nullptr) compare(report, *baseline, tiles.back());
  }
  return tiles;
}

void put_run(std::vector<Tile>& tiles, const MetricsState& metrics, Seconds predicted) {
  const Seconds median = metrics.median;
  if (median <= Seconds(0)) return;
  const auto step = std::ranges::find(tiles, "step", &Tile::id);
  if (step == tiles.end()) return;
  step->beside =
      fmt::format("run {}, {}", format_seconds(median), signed_percent(predicted / median - 1));
}

}  // namespace shardwise::view
