#include "simulator/planning/plan_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "planner/question/layout_words.h"
#include "planner/spec/format.h"

namespace shardwise::sim {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kEngine = "engine";
constexpr std::string_view kGpus = "gpus";
constexpr std::string_view kSettings = "settings";
constexpr std::string_view kModelStep = "model";

double in_gib(Bytes bytes) { return bytes / 1_GiB; }

double no_number(const PlanRow& /*row*/) { return kNone; }

/// A column of one field of the layout.
template <auto kField>
constexpr PlanColumn field(std::string_view key, std::string_view heading) {
  return {key,
          heading,
          "",
          ColumnUse::differing,
          false,
          [](const PlanRow& r) { return static_cast<double>(r.candidate.layout.*kField); },
          [](const PlanRow& r) { return std::to_string(r.candidate.layout.*kField); }};
}

constexpr std::array kColumns = {
    PlanColumn{"step", "step", "s", ColumnUse::always, false,
               [](const PlanRow& r) { return r.step().value(); },
               [](const PlanRow& r) { return format_seconds(r.step()); }},
    PlanColumn{kModelStep, "model", "s", ColumnUse::differing, false,
               [](const PlanRow& r) { return r.candidate.cost.step_time.value(); },
               [](const PlanRow& r) { return format_seconds(r.candidate.cost.step_time); }},
    PlanColumn{"mfu", "MFU", "%", ColumnUse::always, false,
               [](const PlanRow& r) { return 100 * r.mfu; },
               [](const PlanRow& r) { return format_percent(r.mfu); }},
    PlanColumn{"memory", "GiB", "GiB", ColumnUse::always, false,
               [](const PlanRow& r) { return in_gib(r.candidate.cost.point); },
               [](const PlanRow& r) { return format_gib(r.candidate.cost.point); }},
    PlanColumn{"upper", "GiB at most", "GiB", ColumnUse::chosen, false,
               [](const PlanRow& r) { return in_gib(r.candidate.cost.upper); },
               [](const PlanRow& r) { return format_gib(r.candidate.cost.upper); }},
    PlanColumn{"tokens", "tokens/s", "tokens/s", ColumnUse::chosen, false,
               [](const PlanRow& r) { return r.tokens_per_s; },
               [](const PlanRow& r) { return format_scaled(r.tokens_per_s); }},
    PlanColumn{"cost", "$/1e9 tok", "$/1e9 tok", ColumnUse::differing, false,
               [](const PlanRow& r) {
                 return r.dollars_per_1e9_tokens > 0 ? r.dollars_per_1e9_tokens : kNone;
               },
               [](const PlanRow& r) {
                 return r.dollars_per_1e9_tokens > 0 ? format_dollars(r.dollars_per_1e9_tokens)
                                                     : std::string("-");
               }},
    PlanColumn{kEngine, "engine", "", ColumnUse::differing, true, no_number,
               [](const PlanRow& r) { return r.engine; }},
    PlanColumn{kGpus, "GPUs", "", ColumnUse::differing, false,
               [](const PlanRow& r) { return static_cast<double>(r.cluster->gpus); },
               [](const PlanRow& r) { return format_count(r.cluster->gpus); }},
    field<&Layout::tp>("tp", "tp"),
    field<&Layout::cp>("cp", "cp"),
    field<&Layout::pp>("pp", "pp"),
    field<&Layout::vpp>("vpp", "vpp"),
    field<&Layout::ep>("ep", "ep"),
    field<&Layout::etp>("etp", "etp"),
    PlanColumn{"dp", "dp", "", ColumnUse::differing, false,
               [](const PlanRow& r) { return static_cast<double>(r.candidate.layout.dp()); },
               [](const PlanRow& r) {
                 const Layout& l = r.candidate.layout;
                 return l.dp_replicate > 1 ? fmt::format("{} x {}", l.dp_shard, l.dp_replicate)
                                           : std::to_string(l.dp_shard);
               }},
    field<&Layout::micro_batch_size>("mbs", "mbs"),
    field<&Layout::zero_stage>("zero", "ZeRO"),
    PlanColumn{kSettings, "settings", "", ColumnUse::differing, true, no_number,
               [](const PlanRow& r) { return other_settings(r.candidate.layout); }},
};

bool says_nothing(const std::string& value) {
  return value == "1" || value == "-" || value.empty();
}

}  // namespace

std::span<const PlanColumn> plan_columns() { return kColumns; }

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
    for (const PlanRow& row : rows) values.insert(each.text(row));
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
