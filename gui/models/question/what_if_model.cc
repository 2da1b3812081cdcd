#include "gui/models/question/what_if_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "planner/estimate/gpu_hour_price.h"
#include "planner/legality/legality.h"
#include "planner/question/field_values.h"
#include "planner/schedule/gathers_once.h"
#include "planner/search/advice/why_not.h"
#include "planner/search/space/space.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/number.h"

namespace shardwise::view {
namespace {

constexpr std::int64_t kMostHeldBack = 60;  // percent
constexpr std::int64_t kShortestSequence = 512;
constexpr std::int64_t kMostSequence = 1 << 20;
constexpr std::int64_t kMostBatchDoublings = 6;  // to either side
constexpr std::int64_t kMostCents = 1200;        // of a GPU-hour
constexpr std::int64_t kCentStep = 25;
constexpr double kCents = 100;

/// How many ranks share states, and how many replicas of them there are.
struct DataAxes {
  std::int64_t shard = 1;
  std::int64_t replicate = 1;
};

/// What data parallelism may become: all ways to split `dp` ranks into shards and replicas, the
/// ones that change least of the layout first. The axis that had the data parallelism keeps it.
std::vector<DataAxes> data_axes(const Layout& before, std::int64_t dp) {
  std::vector<DataAxes> ways;
  for (std::int64_t less = 1; less * less <= dp; ++less) {
    if (dp % less != 0) continue;
    ways.push_back({less, dp / less});
    if (less * less < dp) ways.push_back({dp / less, less});
  }
  const bool replicas_follow = before.dp_replicate > 1 && before.dp_shard == 1;
  std::ranges::stable_sort(ways, {}, [&](const DataAxes& way) {
    const bool shard = way.shard != before.dp_shard;
    const bool replicate = way.replicate != before.dp_replicate;
    return std::tuple(int{shard} + int{replicate}, replicas_follow ? shard : replicate,
                      replicas_follow ? way.shard : way.replicate);
  });
  return ways;
}

/// The layout with other values on so many GPUs, and with the data parallelism of the first way
/// that `accepts` has the plan of; nothing where it has none.
std::optional<Plan> completed(const Plan& plan, const FieldValues& values,
                              bool (*accepts)(const Plan& plan)) {
  const Layout given = with_values(plan.layout, plan.cluster.gpus, values);
  const std::int64_t inner = std::int64_t{given.tp} * given.cp * given.pp;
  if (plan.cluster.gpus % inner != 0) return std::nullopt;
  for (const DataAxes& way : data_axes(plan.layout, plan.cluster.gpus / inner)) {
    FieldValues all = {{"dp_shard", std::to_string(way.shard)},
                       {"dp_replicate", std::to_string(way.replicate)}};
    all.insert(all.end(), values.begin(), values.end());
    Plan changed = plan;
    changed.layout = with_values(plan.layout, plan.cluster.gpus, all);
    gather_once(changed.layout, plan.engine, plan.job);
    if (changed.layout.world() == plan.cluster.gpus && accepts(changed)) return changed;
  }
  return std::nullopt;
}

std::optional<Plan> with_layout(const Plan& plan, const std::string& key, std::int64_t step) {
  Layout probe = plan.layout;
  std::string text = std::to_string(step);
  if (key == "recompute") text = kNamesOf<Recompute>[static_cast<std::size_t>(step)];
  if (!set_field(probe, key, text).empty()) return std::nullopt;
  return completed(plan, {{key, text}}, [](const Plan& changed) {
    return is_legal(changed.model, changed.cluster, changed.job, changed.engine, changed.layout);
  });
}

std::optional<Plan> checked(Plan plan) {
  if (!check_plan(plan).empty()) return std::nullopt;
  return plan;
}

std::optional<Plan> on_gpus(const Plan& plan, std::int64_t gpus) {
  Result<ClusterSpec> cluster = with_gpus(plan.cluster, gpus);
  if (!cluster) return std::nullopt;
  Plan changed = plan;
  changed.cluster = *std::move(cluster);
  return completed(changed, {}, [](const Plan& each) { return check_plan(each).empty(); });
}

std::string step_text(const std::string& id, std::int64_t step) {
  if (id == "recompute") return std::string(kNamesOf<Recompute>[static_cast<std::size_t>(step)]);
  if (id == "price") return fmt::format("{:.2f}", static_cast<double>(step) / kCents);
  return std::to_string(step);
}

/// The values after which with_slider() has a plan, and the one that is.
void keep_valid(const Plan& plan, Slider& slider, std::vector<std::int64_t> values,
                std::int64_t now) {
  values.push_back(now);
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (const std::int64_t value : values) {
    if (value == now) slider.at = slider.steps.size();
    if (value == now || with_slider(plan, slider, value)) slider.steps.push_back(value);
  }
  for (const std::int64_t step : slider.steps) slider.texts.push_back(step_text(slider.id, step));
}

/// Powers of two from `least` to `most`.
std::vector<std::int64_t> doublings(std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = std::max<std::int64_t>(1, least); value <= most; value *= 2) {
    values.push_back(value);
  }
  return values;
}

Slider field(const Plan& plan, const SearchSpace& space, std::string id, std::string label) {
  std::vector<std::int64_t> values;
  const auto take = [&](const auto& of) { values.assign(of.begin(), of.end()); };
  std::int64_t now = 0;
  std::string text;
  const Layout& layout = plan.layout;
  const auto number = [&](const auto& of, std::int64_t value) {
    take(of);
    now = value;
    text = std::to_string(value);
  };
  if (id == "tp") number(space.tp, layout.tp);
  if (id == "cp") number(space.cp, layout.cp);
  if (id == "pp") number(space.pp, layout.pp);
  if (id == "vpp") number(space.vpp, layout.vpp);
  if (id == "ep") number(space.ep, layout.ep);
  if (id == "dp_replicate") number(space.dp_replicate, layout.dp_replicate);
  if (id == "micro_batch_size") number(space.micro_batch_size, layout.micro_batch_size);
  if (id == "zero_stage") number(space.zero_stage, layout.zero_stage);
  if (id == "recompute") {
    for (const Recompute each : space.recompute) values.push_back(static_cast<std::int64_t>(each));
    now = static_cast<std::int64_t>(layout.recompute);
    text = std::string(name_of(layout.recompute));
  }
  Slider slider{std::move(id), std::move(label), {}, {}, 0, std::move(text), Change::layout};
  keep_valid(plan, slider, std::move(values), now);
  return slider;
}

Slider question(const Plan& plan, std::string id, std::string label,
                std::vector<std::int64_t> values, std::int64_t now, std::string text) {
  Slider slider{std::move(id), std::move(label), {}, {}, 0, std::move(text), Change::question};
  keep_valid(plan, slider, std::move(values), now);
  return slider;
}

std::vector<std::int64_t> batches(std::int64_t now) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 1; i <= kMostBatchDoublings; ++i) {
    const std::int64_t factor = std::int64_t{1} << i;
    if (now % factor == 0) values.push_back(now / factor);
    if (now <= kMaxBatch / factor) values.push_back(now * factor);
  }
  return values;
}

std::int64_t held_back_percent(const Plan& plan) { return std::llround(100 * plan.job.held_back); }

/// Of an hour of a GPU; 0 where none is known.
std::int64_t cents_of(const ClusterSpec& cluster) {
  return std::llround(kCents * gpu_hour_price(cluster).value_or(0));
}

Slider price_slider(const Plan& plan) {
  std::vector<std::int64_t> cents;
  for (std::int64_t each = kCentStep; each <= kMostCents; each += kCentStep) cents.push_back(each);
  const std::int64_t now = cents_of(plan.cluster);
  Slider price = question(plan, "price", "an hour of a GPU", std::move(cents), now,
                          now > 0 ? format_dollars(static_cast<double>(now) / kCents) : "none");
  price.change = Change::dollars;
  return price;
}

}  // namespace

std::optional<std::int64_t> step_of(const Slider& slider, std::string_view typed) {
  const auto found = std::ranges::find(slider.texts, typed);
  if (found != slider.texts.end()) {
    return slider.steps[static_cast<std::size_t>(found - slider.texts.begin())];
  }
  if (slider.id == "recompute") return std::nullopt;
  if (slider.id != "price") return parse_integer(typed);
  const std::optional<double> dollars = parse_number(typed);
  constexpr double kMostDollars = 1e6;
  if (!dollars || !(*dollars > 0 && *dollars < kMostDollars)) return std::nullopt;
  return std::llround(kCents * *dollars);
}

std::optional<Plan> with_slider(const Plan& plan, const Slider& slider, std::int64_t step) {
  Plan changed = plan;
  if (slider.id == "sequence_length") {
    changed.job.sequence_length = step;
  } else if (slider.id == "global_batch_size") {
    changed.job.global_batch_size = step;
  } else if (slider.id == "gpus") {
    return on_gpus(plan, step);
  } else if (slider.id == "held_back") {
    if (step < 0 || step > kMostHeldBack) return std::nullopt;
    changed.job.held_back = static_cast<double>(step) / 100;
  } else if (slider.id == "price") {
    if (step == cents_of(plan.cluster)) return changed;
    changed.cluster.price_per_gpu_hour = static_cast<double>(step) / kCents;
  } else {
    return with_layout(plan, slider.id, step);
  }
  return checked(std::move(changed));
}

std::int64_t held_back_at(const ClusterSpec& cluster, Bytes usable) {
  const double share = 1 - usable / cluster.gpu.hbm_bytes;
  return std::clamp<std::int64_t>(std::llround(100 * share), 0, kMostHeldBack);
}

std::vector<SliderSection> what_if_sliders(const Plan& plan) {
  const SearchSpace space =
      search_space(layout_question(plan.model, plan.cluster, plan.job, plan.engine), Breadth::full);
  SliderSection mesh{"Mesh", {}};
  for (const auto& [id, label] : std::initializer_list<std::pair<const char*, const char*>>{
           {"tp", "tensor parallel"},
           {"cp", "context parallel"},
           {"pp", "pipeline stages"},
           {"vpp", "chunks of a stage"},
           {"ep", "expert parallel"},
           {"dp_replicate", "replicas"},
           {"zero_stage", "ZeRO stage"},
           {"micro_batch_size", "micro-batch"},
           {"recompute", "recompute"}}) {
    Slider slider = field(plan, space, id, label);
    if (slider.steps.size() > 1) mesh.sliders.push_back(std::move(slider));
  }
  SliderSection job{"Job", {}};
  job.sliders.push_back(question(plan, "sequence_length", "sequence length",
                                 doublings(kShortestSequence, kMostSequence),
                                 plan.job.sequence_length, format_count(plan.job.sequence_length)));
  job.sliders.push_back(question(plan, "global_batch_size", "global batch",
                                 batches(plan.job.global_batch_size), plan.job.global_batch_size,
                                 format_count(plan.job.global_batch_size)));
  SliderSection machines{"Cluster", {}};
  machines.sliders.push_back(question(plan, "gpus", "GPUs",
                                      doublings(plan.cluster.gpus_per_node, 1 << 14),
                                      plan.cluster.gpus, format_count(plan.cluster.gpus)));
  std::vector<std::int64_t> shares;
  for (std::int64_t percent = 0; percent <= kMostHeldBack; ++percent) shares.push_back(percent);
  Slider held = question(plan, "held_back", "memory held back", std::move(shares),
                         held_back_percent(plan), fmt::format("{} %", held_back_percent(plan)));
  held.change = Change::verdict;
  machines.sliders.push_back(std::move(held));
  machines.sliders.push_back(price_slider(plan));
  return {std::move(mesh), std::move(job), std::move(machines)};
}

}  // namespace shardwise::view
