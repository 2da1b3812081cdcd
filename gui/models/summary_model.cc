#include "gui/models/summary_model.h"

#include <fmt/format.h>

#include <utility>

#include "planner/spec/format.h"
#include "planner/spec/names.h"

namespace shardwise::view {
namespace {

/// "56.5 s" as a number and its unit.
std::pair<std::string, std::string> split(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return {text, ""};
  return {text.substr(0, space), text.substr(space + 1)};
}

Tile tile(std::string id, std::string label, const std::string& text, Tone tone = Tone::plain) {
  auto [value, unit] = split(text);
  std::string command = "details.show " + id;
  if (id == "step" || id == "bubble" || id == "exposed") command = "view.timeline";
  if (id == "memory") command = "view.memory";
  if (id == "tokens" || id == "cost") command = "view.scaling";
  return {std::move(id), std::move(label),  std::move(value), std::move(unit),
          tone,          std::move(command)};
}

/// Tones of shares that people would rather have small.
Tone loss_tone(double share) {
  constexpr double kMuch = 0.1;
  constexpr double kTooMuch = 0.3;
  if (share < kMuch) return Tone::plain;
  return share < kTooMuch ? Tone::warning : Tone::bad;
}

Tone fit_tone(Fit fit) {
  if (fit == Fit::fits) return Tone::good;
  return fit == Fit::at_risk ? Tone::warning : Tone::bad;
}

}  // namespace

std::vector<Tile> summary_tiles(const StepReport& report) {
  std::vector<Tile> tiles;
  tiles.push_back(tile("step", "step time", format_seconds(report.step_time)));
  tiles.push_back(tile("mfu", "MFU", format_percent(report.mfu)));
  Tile memory = tile("memory", "peak memory", format_bytes(report.verdict.point),
                     fit_tone(report.verdict.fit));
  memory.unit = fmt::format("of {}", format_bytes(report.verdict.usable));
  tiles.push_back(std::move(memory));
  const double bubble = report.time.bubble / report.step_time;
  tiles.push_back(tile("bubble", "bubble", format_percent(bubble), loss_tone(bubble)));
  const Seconds waited = report.time.tp_exposed + report.time.cp_exposed + report.time.ep_exposed +
                         report.time.pp_exposed + report.time.dp_exposed;
  const double exposed = waited / report.step_time;
  tiles.push_back(
      tile("exposed", "exposed communication", format_percent(exposed), loss_tone(exposed)));
  tiles.push_back(tile("tokens", "tokens a second", format_scaled(report.tokens_per_s)));
  if (report.dollars_per_1e9_tokens > 0) {
    Tile cost = tile("cost", "a billion tokens", format_dollars(report.dollars_per_1e9_tokens));
    tiles.push_back(std::move(cost));
  }
  return tiles;
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
