#include "answers/plan_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "planner/estimate/estimate.h"
#include "planner/question/layout_words.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"

namespace shardwise::sim {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kEngine = "engine";
constexpr std::string_view kGpus = "gpus";
constexpr std::string_view kSettings = "settings";
constexpr std::string_view kModelStep = "model";

using Row = PricedLayout;

double in_gib(Bytes bytes) { return bytes / 1_GiB; }

double no_number(const Row& /*row*/) { return kNone; }

/// Before numbers that grow and that fall with a time that is a lower bound.
std::string at_least(const Row& row) { return row.bound ? "≥ " : ""; }
std::string at_most(const Row& row) { return row.bound ? "≤ " : ""; }

std::string step_text(const Row& row) {
  return (row.estimated ? "~ " : at_least(row)) + format_seconds(row.step);
}

/// A column of one field of the layout.
template <auto kField>
constexpr PlanColumn field(std::string_view key, std::string_view heading, std::string_view meaning,
                           ColumnUse use = ColumnUse::differing) {
  return {key,
          heading,
          meaning,
          "",
          use,
          false,
          [](const Row& r) { return static_cast<double>(r.layout->*kField); },
          [](const Row& r) { return std::to_string(r.layout->*kField); }};
}

std::string rank_text(const Row& row) {
  return row.rank == 0 ? "-" : fmt::format("{}{}", row.rank, row.tied ? "=" : "");
}

std::string cost_text(const Row& row) {
  const double dollars = row.dollars_per_1e9_tokens;
  return dollars > 0 ? at_least(row) + format_dollars(dollars) : "-";
}

std::string dp_text(const Row& row) {
  const Layout& l = *row.layout;
  return l.dp_replicate > 1 ? fmt::format("{} x {}", l.dp_shard, l.dp_replicate)
                            : std::to_string(l.dp_shard);
}

std::string recompute_text(const Row& row) {
  if (row.layout->recompute == Recompute::none) return "-";
  return std::string(name_of(row.layout->recompute));
}

constexpr std::array kColumns = {
    PlanColumn{"rank", "#", "place in the ranking", "", ColumnUse::chosen, false,
               [](const Row& r) { return r.rank == 0 ? kNone : static_cast<double>(r.rank); },
               rank_text},
    PlanColumn{"step", "step", "time of a step, in seconds", "s", ColumnUse::always, false,
               [](const Row& r) { return r.step.value(); }, step_text},
    PlanColumn{kModelStep, "model", "time of a step by the step-time model, in seconds", "s",
               ColumnUse::differing, false, [](const Row& r) { return r.model.value(); },
               [](const Row& r) { return at_least(r) + format_seconds(r.model); }},
    PlanColumn{"mfu", "MFU", "model FLOPs over the GPUs' peak, in percent", "%", ColumnUse::always,
               false, [](const Row& r) { return 100 * r.mfu; },
               [](const Row& r) { return at_most(r) + format_percent(r.mfu); }},
    PlanColumn{"memory", "GiB", "peak of the fullest GPU", "GiB", ColumnUse::always, false,
               [](const Row& r) { return in_gib(r.memory); },
               [](const Row& r) { return format_gib(r.memory); }},
    PlanColumn{"upper", "GiB at most", "upper bound of that peak", "GiB", ColumnUse::chosen, false,
               [](const Row& r) { return in_gib(r.upper); },
               [](const Row& r) { return format_gib(r.upper); }},
    PlanColumn{"tokens", "tokens/s", "tokens a second of all GPUs", "tokens/s", ColumnUse::chosen,
               false, [](const Row& r) { return r.tokens_per_s; },
               [](const Row& r) { return at_most(r) + format_scaled(r.tokens_per_s); }},
    PlanColumn{"cost", "$/1e9 tok", "dollars for a billion tokens", "$/1e9 tok",
               ColumnUse::differing, false,
               [](const Row& r) {
                 return r.dollars_per_1e9_tokens > 0 ? r.dollars_per_1e9_tokens : kNone;
               },
               cost_text},
    PlanColumn{kEngine, "engine", "training engine", "", ColumnUse::differing, true, no_number,
               [](const Row& r) { return std::string(r.engine); }},
    PlanColumn{kGpus, "GPUs", "GPUs of the cluster", "", ColumnUse::differing, false,
               [](const Row& r) { return static_cast<double>(r.gpus); },
               [](const Row& r) { return format_count(r.gpus); }},
    field<&Layout::tp>("tp", "tp", "ways of tensor parallelism"),
    field<&Layout::cp>("cp", "cp", "ways of context parallelism"),
    field<&Layout::pp>("pp", "pp", "pipeline stages"),
    field<&Layout::vpp>("vpp", "vpp", "model chunks of a stage"),
    field<&Layout::ep>("ep", "ep", "ways of expert parallelism"),
    field<&Layout::etp>("etp", "etp", "ways of tensor parallelism of experts"),
    PlanColumn{"dp", "dp", "data-parallel ranks, shards times replicas", "", ColumnUse::differing,
               false, [](const Row& r) { return static_cast<double>(r.layout->dp()); }, dp_text},
    field<&Layout::dp_shard>("shard", "shard", "data-parallel ranks that share states",
                             ColumnUse::chosen),
    field<&Layout::dp_replicate>("repl", "repl", "data-parallel replicas", ColumnUse::chosen),
    field<&Layout::micro_batch_size>("mbs", "mbs", "sequences of a micro-batch"),
    field<&Layout::zero_stage>("zero", "ZeRO", "ZeRO stage: what is sharded"),
    PlanColumn{
        "recompute", "recomp", "activations that backward makes again", "", ColumnUse::chosen, true,
        [](const Row& r) { return static_cast<double>(r.layout->recompute); }, recompute_text},
    PlanColumn{kSettings, "settings", "other settings that are not the usual ones", "",
               ColumnUse::differing, true, no_number,
               [](const Row& r) { return other_settings(*r.layout); }},
};

constexpr std::array kTraits = {
    PlanTrait{"fits", "its upper bound fits",
              [](const PricedLayout& r) { return r.fit == Fit::fits; }},
    PlanTrait{"risk", "its upper bound alone does not fit",
              [](const PricedLayout& r) { return r.fit == Fit::at_risk; }},
    PlanTrait{"over", "it does not fit",
              [](const PricedLayout& r) { return r.fit == Fit::does_not_fit; }},
    PlanTrait{"front", "on the Pareto front of memory and time",
              [](const PricedLayout& r) { return r.front; }},
};

bool says_nothing(const std::string& value) {
  return value == "1" || value == "-" || value.empty();
}

}  // namespace

PricedLayout priced(const PlanRow& row, std::size_t rank) {
  PricedLayout made;
  made.layout = &row.candidate.layout;
  made.rank = rank;
  made.tied = row.tied;
  made.memory = row.candidate.cost.point;
  made.upper = row.candidate.cost.upper;
  made.step = row.step();
  made.model = row.candidate.cost.step_time;
  made.mfu = row.mfu;
  made.tokens_per_s = row.tokens_per_s;
  made.dollars_per_1e9_tokens = row.dollars_per_1e9_tokens;
  made.engine = row.engine;
  made.gpus = row.cluster == nullptr ? row.candidate.layout.world() : row.cluster->gpus;
  return made;
}

PricedLayout priced(const PlanRow& row, std::size_t rank, const PlanAnswer& answer) {
  PricedLayout made = priced(row, rank);
  made.estimated = !row.simulated && !answer.best.empty() && answer.best.front().simulated;
  made.fit = fit_of(row.candidate.cost, answer.usable);
  made.front = std::ranges::any_of(answer.front, [&](const PlanRow& each) {
    return each.cluster == row.cluster && each.engine == row.engine &&
           each.candidate.layout == row.candidate.layout;
  });
  return made;
}

std::span<const PlanColumn> plan_columns() { return kColumns; }
std::span<const PlanTrait> plan_traits() { return kTraits; }

const PlanColumn* find_plan_column(std::string_view key) {
  const auto* const at = std::ranges::find(kColumns, key, &PlanColumn::key);
  return at == kColumns.end() ? nullptr : &*at;
}

ToldColumns told_columns(std::span<const PlanRow> rows, bool several_engines) {
  ToldColumns told;
  for (const PlanColumn& each : kColumns) {
    if (each.use == ColumnUse::chosen) continue;
    if (each.key == kModelStep) {  // beside a simulated step
      if (std::ranges::any_of(rows, [](const PlanRow& row) { return row.simulated.has_value(); })) {
        told.columns.push_back(&each);
      }
      continue;
    }
    std::set<std::string> values;
    for (const PlanRow& row : rows) values.insert(each.text(priced(row)));
    const std::string& value = *values.begin();
    const bool tells = values.size() > 1 || (rows.size() == 1 && !says_nothing(value));
    if (each.use == ColumnUse::always || tells || (several_engines && each.key == kEngine)) {
      told.columns.push_back(&each);
    } else if (each.key == kEngine || each.key == kGpus) {
      continue;  // the heading of the answer has them
    } else if (!says_nothing(value) && rows.size() > 1) {
      told.in_all.push_back(each.key == kSettings ? value
                                                  : fmt::format("{} {}", each.heading, value));
    }
  }
  return told;
}

}  // namespace shardwise::sim
