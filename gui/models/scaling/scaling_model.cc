#include "gui/models/scaling/scaling_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "gui/models/question/layout_text.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/question/catalogue_summary.h"
#include "planner/search/advice/best_layout.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"

namespace shardwise::view {
namespace {

constexpr int kGpuDoublings = 3;  // to either side
constexpr int kRowDoublings = 2;
constexpr int kModels = 3;            // to either side
constexpr double kModelStep = 1.5;    // from one to the next, at least
constexpr double kFamilyReach = 4.5;  // within which a model of the family comes first

/// The value, doubled and halved so often; whole numbers from `least` on.
std::vector<std::int64_t> doublings_around(std::int64_t value, int doublings, std::int64_t least) {
  std::vector<std::int64_t> found;
  for (int doubling = -doublings; doubling <= doublings; ++doubling) {
    const std::int64_t factor = std::int64_t{1} << std::abs(doubling);
    if (doubling < 0 && value % factor != 0) continue;
    const std::int64_t each = doubling < 0 ? value / factor : value * factor;
    if (each >= least || each == value) found.push_back(each);
  }
  return found;
}

/// Of models that are larger (or smaller) than the last, the next: one of the family if it is near.
const ModelSummary* next_model(std::span<const ModelSummary> known, double last,
                               const std::string& family, bool larger) {
  const ModelSummary* found = nullptr;
  const auto step = [&](const ModelSummary& each) {
    const double ratio = static_cast<double>(each.parameters) / last;
    return larger ? ratio : 1 / ratio;
  };
  const auto wins = [&](const ModelSummary& each) {
    if (found == nullptr) return true;
    const auto kin = [&](const ModelSummary& of) {
      return of.family == family && step(of) <= kFamilyReach;
    };
    if (kin(each) != kin(*found)) return kin(each);
    return step(each) < step(*found);
  };
  for (const ModelSummary& each : known) {
    if (each.parameters > 0 && step(each) >= kModelStep && wins(each)) found = &each;
  }
  return found;
}

void add_models(const Plan& plan, ScalingMap& map) {
  const std::vector<ModelSummary> known = model_summaries();
  const auto own = std::ranges::find(known, plan.model.name, &ModelSummary::name);
  const auto size =
      static_cast<double>(own == known.end() ? plan.model.parameter_count() : own->parameters);
  for (const bool larger : {false, true}) {
    double last = size;
    for (int i = 0; i < kModels; ++i) {
      const ModelSummary* const next = next_model(known, last, plan.model.model_type, larger);
      if (next == nullptr) break;
      last = static_cast<double>(next->parameters);
      Result<ModelSpec> model = load_model(next->name);
      if (!model) continue;
      ScalingRow row{next->name, next->name, std::make_shared<const ModelSpec>(*std::move(model)),
                     plan.job};
      // Smaller ones come nearest first.
      map.rows.insert(larger ? map.rows.end() : map.rows.begin(), std::move(row));
    }
    if (larger) continue;
    map.row = map.rows.size();
    map.rows.push_back({plan.model.name, plan.model.name,
                        std::make_shared<const ModelSpec>(plan.model), plan.job});
  }
}

void add_numbers(const Plan& plan, ScalingMap& map) {
  const bool sequences = map.kind == ScalingRows::sequence;
  const std::int64_t own = sequences ? plan.job.sequence_length : plan.job.global_batch_size;
  const auto model = std::make_shared<const ModelSpec>(plan.model);
  constexpr std::int64_t kLeastSequence = 128;
  for (const std::int64_t value :
       doublings_around(own, kRowDoublings, sequences ? kLeastSequence : 1)) {
    ScalingRow row{std::to_string(value), format_count(value), model, plan.job};
    (sequences ? row.job.sequence_length : row.job.global_batch_size) = value;
    if (value == own) map.row = map.rows.size();
    map.rows.push_back(std::move(row));
  }
}

/// The number behind a colour; more is better.
std::optional<double> goodness(const ScalingPoint& point, ScalingColour colour) {
  if (!point.layout) return std::nullopt;
  switch (colour) {
    case ScalingColour::mfu:
      return point.mfu;
    case ScalingColour::cost:
      if (point.dollars_per_1e9_tokens <= 0) return std::nullopt;
      return -std::log(point.dollars_per_1e9_tokens);
    case ScalingColour::headroom:
      return point.headroom;
    case ScalingColour::tokens:
      break;
  }
  return std::log(point.tokens_per_s);
}

/// The points with the least and the most of it; nullptr where none has a number.
std::pair<const ScalingPoint*, const ScalingPoint*> extreme_points(const ScalingMap& map,
                                                                   ScalingColour colour) {
  std::pair<const ScalingPoint*, const ScalingPoint*> found;
  for (const ScalingPoint& each : map.cells) {
    const std::optional<double> here = goodness(each, colour);
    if (!here) continue;
    if (found.first == nullptr || *here < goodness(*found.first, colour)) found.first = &each;
    if (found.second == nullptr || *here > goodness(*found.second, colour)) found.second = &each;
  }
  return found;
}

ScalingPoint point_of(const BestLayout& best, std::int64_t gpus) {
  ScalingPoint point;
  point.gpus = gpus;
  point.known = true;
  point.usable = best.usable;
  if (!best.report) {
    if (best.smallest) {
      point.why_none =
          fmt::format("no layout fits: the smallest takes {}, {} more than there is",
                      format_bytes(best.smallest->cost.needed), format_bytes(best.lacks()));
      point.why_short = "+" + format_bytes(best.lacks());
    } else {
      point.why_none = "no layout is legal: " + best.refused;
      point.why_short = "illegal";
    }
    return point;
  }
  const StepReport& report = *best.report;
  point.layout = report.layout;
  point.at_risk = report.verdict.fit != Fit::fits;
  point.memory = report.verdict.point;
  point.time = report.step_time;
  point.mfu = report.mfu;
  point.tokens_per_s = report.tokens_per_s;
  point.dollars_per_1e9_tokens = report.dollars_per_1e9_tokens;
  point.headroom = 1 - static_cast<double>(report.verdict.upper.value()) /
                           static_cast<double>(report.verdict.usable.value());
  return point;
}

}  // namespace

void slow_down(ScalingPoint& point, double slower) {
  point.time = point.time * slower;
  point.mfu /= slower;
  point.tokens_per_s /= slower;
  point.dollars_per_1e9_tokens *= slower;
}

std::span<const ScalingPoint> ScalingMap::points() const {
  return std::span(cells).subspan(row * gpus.size(), rows.empty() ? 0 : gpus.size());
}

std::size_t ScalingMap::known() const {
  return static_cast<std::size_t>(std::ranges::count(cells, true, &ScalingPoint::known));
}

std::optional<std::size_t> ScalingMap::next() const {
  const auto found = std::ranges::find_if(order, [&](std::size_t at) { return !cells[at].known; });
  if (found == order.end()) return std::nullopt;
  return *found;
}

ScalingMap scaling_map(std::shared_ptr<const Plan> plan, ScalingRows rows) {
  ScalingMap map;
  map.kind = rows;
  for (const std::int64_t gpus : doublings_around(plan->cluster.gpus, kGpuDoublings, 1)) {
    if (gpus > kMostGpus || !with_gpus(plan->cluster, gpus)) continue;
    if (gpus == plan->cluster.gpus) map.column = map.gpus.size();
    map.gpus.push_back(gpus);
  }
  rows == ScalingRows::model ? add_models(*plan, map) : add_numbers(*plan, map);
  map.plan = std::move(plan);
  map.cells.resize(map.rows.size() * map.gpus.size());
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    map.cells[i].gpus = map.gpus[i % map.gpus.size()];
    map.order.push_back(i);
  }
  const auto distance = [&](std::size_t cell) {
    const auto apart = [](std::size_t a, std::size_t b) { return a > b ? a - b : b - a; };
    return apart(cell / map.gpus.size(), map.row) + apart(cell % map.gpus.size(), map.column);
  };
  std::ranges::stable_sort(map.order, {}, distance);
  return map;
}

Plan plan_of_cell(const ScalingMap& map, std::size_t cell) {
  const ScalingRow& row = map.rows[cell / map.gpus.size()];
  const ScalingPoint& point = map.cells[cell];
  Plan plan = *map.plan;
  plan.model = *row.model;
  plan.job = row.job;
  plan.cluster = *with_gpus(plan.cluster, point.gpus);
  if (point.layout) plan.layout = *point.layout;
  return plan;
}

std::optional<std::size_t> find_cell(const ScalingMap& map, const Plan& plan) {
  if (!map.plan || plan.engine != map.plan->engine) return std::nullopt;
  for (std::size_t cell = 0; cell < map.cells.size(); ++cell) {
    const ScalingRow& row = map.rows[cell / map.gpus.size()];
    if (map.cells[cell].gpus != plan.cluster.gpus || row.job != plan.job) continue;
    const Plan there = plan_of_cell(map, cell);
    if (there.cluster == plan.cluster && there.model == plan.model) return cell;
  }
  return std::nullopt;
}

std::optional<ScalingPoint> searched(const Plan& question,
                                     const std::shared_ptr<SearchMemory>& memory,
                                     const std::stop_token& stop) {
  const BestLayout best = best_layout(
      {&question.model, &question.cluster, &question.job, &question.engine, false, memory, stop});
  if (best.stopped || stop.stop_requested()) return std::nullopt;
  return point_of(best, question.cluster.gpus);
}

double efficiency(std::span<const ScalingPoint> points, const ScalingPoint& point) {
  const auto first = std::ranges::find_if(
      points, [](const ScalingPoint& each) { return each.layout.has_value(); });
  if (first == points.end() || !point.layout) return 0;
  const auto each = [](const ScalingPoint& of) {
    return of.tokens_per_s / static_cast<double>(of.gpus);
  };
  return each(point) / each(*first);
}

std::string colour_text(const ScalingPoint& point, ScalingColour colour) {
  if (!goodness(point, colour)) return "";
  switch (colour) {
    case ScalingColour::mfu:
      return format_percent(point.mfu);
    case ScalingColour::cost:
      return format_dollars(point.dollars_per_1e9_tokens);
    case ScalingColour::headroom:
      return format_percent(point.headroom);
    case ScalingColour::tokens:
      break;
  }
  return format_scaled(point.tokens_per_s);
}

std::string_view colour_heading(ScalingColour colour) {
  switch (colour) {
    case ScalingColour::mfu:
      return "MFU";
    case ScalingColour::cost:
      return "$ for 1e9 tokens";
    case ScalingColour::headroom:
      return "memory left";
    case ScalingColour::tokens:
      break;
  }
  return "tokens/s";
}

std::optional<double> shade(const ScalingMap& map, const ScalingPoint& point,
                            ScalingColour colour) {
  const std::optional<double> here = goodness(point, colour);
  const auto [least, most] = extreme_points(map, colour);
  if (!here || least == nullptr) return std::nullopt;
  const double low = goodness(*least, colour).value_or(*here);
  const double high = goodness(*most, colour).value_or(*here);
  return high > low ? (*here - low) / (high - low) : 1;
}

std::array<std::string, 2> colour_ends(const ScalingMap& map, ScalingColour colour) {
  const auto [least, most] = extreme_points(map, colour);
  if (least == nullptr) return {};
  return {colour_text(*least, colour), colour_text(*most, colour)};
}

std::optional<std::size_t> cheapest_column(const ScalingMap& map, std::size_t row) {
  std::optional<std::size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t column = 0; column < map.gpus.size(); ++column) {
    const ScalingPoint& point = map.at(row, column);
    if (!point.layout) continue;
    // GPUs of one kind have one price.
    const double cost = static_cast<double>(point.gpus) / point.tokens_per_s;
    if (cost >= least) continue;
    least = cost;
    best = column;
  }
  return best;
}

std::string cell_text(const ScalingMap& map, std::size_t cell) {
  const ScalingPoint& point = map.cells[cell];
  const ScalingRow& row = map.rows[cell / map.gpus.size()];
  std::string text =
      fmt::format("{} on {} GPUs, batch {} x {} tokens", row.model->name, format_count(point.gpus),
                  format_count(row.job.global_batch_size), format_count(row.job.sequence_length));
  if (!point.known) return text + "\nnot searched yet";
  if (!point.layout) return text + "\n" + point.why_none;
  text += fmt::format("\n{}", layout_text(*point.layout));
  text += fmt::format("\nstep {}, MFU {}, {} tokens/s", format_seconds(point.time),
                      format_percent(point.mfu), format_scaled(point.tokens_per_s));
  if (point.dollars_per_1e9_tokens > 0) {
    text += fmt::format("\n{} for 1e9 tokens", format_dollars(point.dollars_per_1e9_tokens));
  }
  text += fmt::format("\n{} of {}{}", format_bytes(point.memory), format_bytes(point.usable),
                      point.at_risk ? ", at risk: its upper bound does not fit" : "");
  return text;
}

}  // namespace shardwise::view
