#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal.h"
#include "cli/verbs.h"
#include "planner/engines/engines.h"
#include "planner/engines/executed.h"
#include "planner/model/hf_config.h"
#include "planner/model/parameter_counts.h"
#include "planner/spec/catalogue.h"
#include "planner/spec/cluster_reader.h"
#include "planner/spec/collective_reader.h"
#include "planner/spec/format.h"
#include "planner/spec/gpu_reader.h"
#include "planner/spec/json_writer.h"
#include "planner/spec/names.h"
#include "planner/spec/schedule_facts.h"
#include "planner/spec/table.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kWidth = 80;

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
  for (const std::string& name : catalogue_names("models")) {
    const Result<ModelSpec> model = load_model(name);
    if (!model) continue;  // a broken file of the user's own catalogue: --model says what is wrong
    const ParameterCounts counts = count_parameters(*model);
    const bool sparse = counts.active < counts.main_model();
    to.table.row({name, format_scaled(static_cast<double>(counts.main_model())),
                  sparse ? format_scaled(static_cast<double>(counts.active)) : "",
                  model->model_type});
    to.json.begin_object();
    to.json.member("name", name);
    to.json.member("parameters", counts.main_model());
    to.json.member("active_parameters", counts.active);
    to.json.member("model_type", model->model_type);
    to.json.end_object();
  }
}

void list_clusters(Listing& to) {
  to.table = Table({{"cluster", Align::left},
                    {"GPUs a node"},
                    {"GPU", Align::left},
                    {"$/GPU-hour"},
                    {"", Align::left}});
  for (const std::string& name : catalogue_names("clusters")) {
    const Result<ClusterSpec> cluster = find_cluster(name);
    if (!cluster) continue;
    const std::optional<double> price =
        cluster->price_per_gpu_hour ? cluster->price_per_gpu_hour : cluster->gpu.price_per_hour;
    to.table.row({name, format_count(cluster->gpus_per_node), cluster->gpu.name,
                  price ? format_dollars(*price) : "", cluster->label});
    to.json.begin_object();
    to.json.member("name", name);
    to.json.member("label", cluster->label);
    to.json.member("gpu", cluster->gpu.name);
    to.json.member("gpus_per_node", cluster->gpus_per_node);
    if (price) to.json.member("price_per_gpu_hour_usd", *price);
    to.json.end_object();
  }
}

void list_gpus(Listing& to) {
  to.table = Table({{"GPU", Align::left}, {"memory"}, {"bf16 peak"}, {"", Align::left}});
  for (const std::string& name : catalogue_names("gpus")) {
    const Result<GpuSpec> gpu = find_gpu(name);
    if (!gpu) continue;
    const FlopsPerSecond peak = gpu->peak(DType::bf16);
    to.table.row({name, format_bytes(gpu->hbm_bytes),
                  peak.value() > 0 ? format_flops_rate(peak) : "", gpu->label});
    to.json.begin_object();
    to.json.member("name", name);
    to.json.member("label", gpu->label);
    to.json.member("hbm_bytes", gpu->hbm_bytes.value());
    if (peak.value() > 0) to.json.member("peak_tflops_bf16", peak.value() / 1e12);
    to.json.end_object();
  }
}

void list_collectives(Listing& to) {
  to.table = Table({{"collectives", Align::left}, {"fitted on", Align::left}});
  for (const std::string& name : catalogue_names("collectives")) {
    const Result<CollectiveCurve> curve = find_collectives(name);
    if (!curve) continue;
    to.table.row({name, curve->fit.measured ? curve->fit.fitted_on : "not measured"});
    to.json.begin_object();
    to.json.member("name", name);
    to.json.member("measured", curve->fit.measured);
    to.json.member("fitted_on", curve->fit.fitted_on);
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
  return wrap(fmt::format("shardwise run trains on CPUs, and on NVIDIA GPUs (never tried yet), "
                          "with {}; plan, simulate and size search "
                          "such layouts on clusters of CPUs (plan --open FIELD lifts it)",
                          fmt::join(fields, ", ")),
              kWidth) +
         "\n";
}

void list_engines(Listing& to) {
  to.more = schedules_table();
  to.table = Table({{"engine", Align::left},
                    {"ZeRO stages", Align::left},
                    {"planned", Align::left},
                    {"shardwise run", Align::left}});
  to.note = executed_text();
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    std::vector<std::string> has;
    if (engine.tensor_parallel) has.emplace_back("tp");
    if (engine.context_parallel) has.emplace_back("cp");
    if (engine.pipeline) has.emplace_back("pp");
    if (engine.expert_parallel) has.emplace_back("ep");
    const bool executed = std::ranges::find(executed_engines(), name) != executed_engines().end();
    to.table.row({name, fmt::format("{}", fmt::join(engine.zero_stages, " ")),
                  has.empty() ? "data parallel only" : fmt::format("{}", fmt::join(has, " ")),
                  executed ? "data parallel only" : ""});
    to.json.begin_object();
    to.json.member("name", name);
    to.json.begin_array("zero_stages");
    for (const int stage : engine.zero_stages) to.json.element(std::int64_t{stage});
    to.json.end_array();
    to.json.begin_array("parallel");
    for (const std::string& each : has) to.json.element(std::string_view(each));
    to.json.end_array();
    to.json.member("executed", executed);
    if (executed) {
      to.json.begin_object("executed_only_with");
      for (const ExecutedField& field : executed_fields()) {
        to.json.member(field.key, field.value);
      }
      to.json.end_object();
    }
    to.json.begin_array("schedules");
    if (engine.pipeline) {
      for (const PipelineSchedule each : engine.schedules) to.json.element(name_of(each));
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
