#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal.h"
#include "cli/verbs.h"
#include "planner/engines/engines.h"
#include "planner/engines/executed.h"
#include "planner/question/catalogue_summary.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

struct ListFlags {
  std::string kind;
  bool json = false;
};

/// Rows of one kind for people and for a program, filled together.
struct Listing {
  Table table;
  JsonWriter json;
  Table more;        // behind the table, for people
  std::string note;  // the same
};

void list_models(Listing& to) {
  to.table = Table({{"model", Align::left}, {"parameters"}, {"active"}, {"family", Align::left}});
  for (const ModelSummary& each : model_summaries()) {
    to.table.row(
        {each.name, format_scaled(static_cast<double>(each.parameters)),
         each.active < each.parameters ? format_scaled(static_cast<double>(each.active)) : "",
         each.family});
    to.json.begin_object();
    to.json.member("name", each.name);
    to.json.member("parameters", each.parameters);
    to.json.member("active_parameters", each.active);
    to.json.member("model_type", each.family);
    to.json.end_object();
  }
}

void list_clusters(Listing& to) {
  to.table = Table({{"cluster", Align::left},
                    {"GPUs a node"},
                    {"GPU", Align::left},
                    {"$/GPU-hour"},
                    {"", Align::left}});
  for (const ClusterSummary& each : cluster_summaries()) {
    const std::optional<double>& price = each.dollars_per_gpu_hour;
    to.table.row({each.name, format_count(each.gpus_per_node), each.gpu,
                  price ? format_dollars(*price) : "", each.label});
    to.json.begin_object();
    to.json.member("name", each.name);
    to.json.member("label", each.label);
    to.json.member("gpu", each.gpu);
    to.json.member("gpus_per_node", each.gpus_per_node);
    if (price) to.json.member("price_per_gpu_hour_usd", *price);
    to.json.end_object();
  }
}

void list_gpus(Listing& to) {
  to.table = Table({{"GPU", Align::left}, {"memory"}, {"bf16 peak"}, {"", Align::left}});
  for (const GpuSummary& each : gpu_summaries()) {
    const bool has_peak = each.bf16_peak.value() > 0;
    to.table.row({each.name, format_bytes(each.memory),
                  has_peak ? format_flops_rate(each.bf16_peak) : "", each.label});
    to.json.begin_object();
    to.json.member("name", each.name);
    to.json.member("label", each.label);
    to.json.member("hbm_bytes", each.memory.value());
    if (has_peak) to.json.member("peak_tflops_bf16", each.bf16_peak.value() / 1e12);
    to.json.end_object();
  }
}

void list_collectives(Listing& to) {
  to.table = Table({{"collectives", Align::left}, {"fitted on", Align::left}});
  for (const CollectivesSummary& each : collectives_summaries()) {
    to.table.row({each.name, each.measured ? each.fitted_on : "not measured"});
    to.json.begin_object();
    to.json.member("name", each.name);
    to.json.member("measured", each.measured);
    to.json.member("fitted_on", each.fitted_on);
    to.json.end_object();
  }
}

/// Model chunks that a stage holds under a schedule.
std::string chunks_text(PipelineSchedule schedule) {
  const ScheduleFacts facts = facts_of(schedule);
  if (facts.takes_vpp) return "--vpp";
  if (facts.copies_model) return "1 of each copy";
  return facts.v_shaped ? "2" : "1";
}

/// By schedule, the engines that run it.
Table schedules_table() {
  using Runs = std::pair<PipelineSchedule, std::vector<std::string>>;
  std::vector<Runs> runs;
  std::size_t pipelines = 0;
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    if (!engine.pipeline) continue;
    ++pipelines;
    for (const PipelineSchedule schedule : engine.schedules) {
      auto row = std::ranges::find(runs, schedule, &Runs::first);
      if (row == runs.end()) row = runs.insert(row, {schedule, {}});
      row->second.push_back(name);
    }
  }
  Table table({{"pipeline schedule", Align::left},
               {"chunks a stage", Align::left},
               {"run by", Align::left}});
  for (const auto& [schedule, engines] : runs) {
    table.row({std::string(name_of(schedule)), chunks_text(schedule),
               engines.size() == pipelines ? "every engine with pp"
                                           : fmt::format("{}", fmt::join(engines, " "))});
  }
  return table;
}

/// What `shardwise run` executes of a layout.
std::string executed_text() {
  std::vector<std::string> fields;
  for (const ExecutedField& field : executed_fields()) {
    fields.push_back(fmt::format("{} {}", field.key, field.value));
  }
  std::vector<std::string_view> schedules;
  for (const PipelineSchedule each : executed_schedules()) schedules.push_back(name_of(each));
  return wrap(fmt::format(
                  "shardwise run trains on CPUs, and on NVIDIA GPUs (tried on one), "
                  "with {}, on GPUs with tp 1 and pp 1, on CPUs with tp, and with pipelines of "
                  "schedule {}; plan, simulate and size search such layouts alone on "
                  "clusters of CPUs (plan --open FIELD lifts it)",
                  fmt::join(fields, ", "), fmt::join(schedules, ", ")),
              kTextWidth) +
         "\n";
}

void list_engines(Listing& to) {
  to.more = schedules_table();
  to.table = Table({{"engine", Align::left},
                    {"ZeRO stages", Align::left},
                    {"planned", Align::left},
                    {"shardwise run", Align::left}});
  to.note = executed_text();
  for (const EngineSummary& each : engine_summaries()) {
    const EngineProfile& engine = *each.engine;
    to.table.row(
        {engine.name, fmt::format("{}", fmt::join(engine.zero_stages, " ")),
         each.axes.empty() ? "data parallel only" : fmt::format("{}", fmt::join(each.axes, " ")),
         !each.executed               ? ""
         : executes_pipelines(engine) ? "data parallel; tp and pp on CPUs"
                                      : "data parallel only"});
    to.json.begin_object();
    to.json.member("name", engine.name);
    to.json.begin_array("zero_stages");
    for (const int stage : engine.zero_stages) to.json.element(std::int64_t{stage});
    to.json.end_array();
    to.json.begin_array("parallel");
    for (const std::string& axis : each.axes) to.json.element(std::string_view(axis));
    to.json.end_array();
    to.json.member("executed", each.executed);
    if (each.executed) {
      to.json.begin_object("executed_only_with");
      for (const ExecutedField& field : executed_fields()) {
        to.json.member(field.key, field.value);
      }
      if (!executes_pipelines(engine)) {
        for (const std::string_view key : {"tp", "pp", "vpp"})
          to.json.member(key, std::string_view("1"));
      }
      to.json.end_object();
    }
    to.json.begin_array("schedules");
    if (engine.pipeline) {
      for (const PipelineSchedule schedule : engine.schedules) {
        to.json.element(name_of(schedule));
      }
    }
    to.json.end_array();
    to.json.end_object();
  }
}

/// What can be listed.
struct Kind {
  std::string_view name;
  void (*list)(Listing&);
};
constexpr Kind kKinds[] = {{"models", list_models},
                           {"clusters", list_clusters},
                           {"gpus", list_gpus},
                           {"collectives", list_collectives},
                           {"engines", list_engines}};

ExitCode run_list(const ListFlags& flags) {
  Listing listing{Table({}), {}, Table({}), {}};
  listing.json.begin_object();
  listing.json.member("schema", "shardwise.list/1");
  listing.json.member("kind", flags.kind);
  listing.json.begin_array("entries");
  std::ranges::find(kKinds, flags.kind, &Kind::name)->list(listing);
  listing.json.end_array();
  listing.json.end_object();
  if (flags.json) {
    fmt::print("{}", listing.json.text());
    return ExitCode::done;
  }
  fmt::print("{}", listing.table.text(wants_colour()));
  const std::string more = listing.more.text(wants_colour());
  if (!more.empty()) fmt::print("\n{}\n{}", listing.note, more);
  return ExitCode::done;
}

}  // namespace

void add_list(CLI::App& app, Run& run) {
  CLI::App* verb =
      app.add_subcommand("list", "List the catalogue: models, clusters, GPUs, links, engines");
  auto flags = std::make_shared<ListFlags>();
  std::vector<std::string> kinds;
  for (const Kind& each : kKinds) kinds.emplace_back(each.name);
  verb->add_option("kind", flags->kind, fmt::format("{}", fmt::join(kinds, ", ")))
      ->required()
      ->type_name("KIND")
      ->check(CLI::IsMember(kinds));
  verb->add_flag("--json", flags->json, "Print as JSON for a program");
  verb->footer("Example\n  shardwise list models");
  verb->callback([&run, flags] { run = [flags] { return run_list(*flags); }; });
}

}  // namespace shardwise::cli
