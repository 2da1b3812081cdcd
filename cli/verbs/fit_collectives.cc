#include "cli/verbs/fit_collectives.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cli/terminal.h"
#include "planner/calibration/collective_measurements.h"
#include "planner/files/atomic_file_set.h"
#include "planner/question/flags.h"
#include "planner/spec/json/csv_file.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/collective_reader.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

Result<RowFilter> row_filter(const std::vector<std::string>& only) {
  RowFilter filter;
  for (const std::string& each : only) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos) {
      return wrong_flag("--only", fmt::format("{} has no =", each), "for example gpu=h100_sxm");
    }
    filter[each.substr(0, equals)].insert(each.substr(equals + 1));
  }
  return filter;
}

Result<std::size_t> tier_of(const ClusterSpec& cluster, const std::string& name) {
  std::string known;
  for (std::size_t i = 0; i < cluster.tiers.size(); ++i) {
    if (cluster.tiers[i].name == name) return i;
    known += (i > 0 ? ", " : "") + cluster.tiers[i].name;
  }
  return wrong_flag("--tier", fmt::format("{} has no tier {}", cluster.name, name), "use " + known);
}

bool is_coefficient(const std::string& key) {
  return std::any_of(kCoefficients.begin(), kCoefficients.end(),
                     [&](const CoefficientName& each) { return each.key == key; });
}

void print_collective_residuals(const std::string& points,
                                const std::vector<CollectiveResidual>& residuals) {
  Table table({{points, Align::left}, {"number"}, {"median error"}, {"95th percentile"}});
  for (const CollectiveResidual& each : residuals) {
    table.row({each.what, format_count(each.points), format_percent(each.median_error),
               format_percent(each.p95_error)});
  }
  fmt::print("{}", table.text(wants_colour()));
}

void write_curve(const std::string& path, const CollectiveCurve& curve) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.collectives/1");
  write_collectives(json, curve);
  json.end_object();
  write_file(path, json.text());
}

}  // namespace

void add_collective_flags(CLI::App& verb, CollectiveFitFlags& flags) {
  verb.add_option("--collectives", flags.files, "CSV: op, gpus, bytes, time_us or busbw_GBps")
      ->type_name("FILE");
  verb.add_option("--cluster", flags.cluster, "The machine measured")->type_name("NAME|FILE");
  verb.add_option("--tier", flags.tier, "Link tier to fit")->type_name("NAME");
  verb.add_option("--only", flags.only, "Use only these rows")->type_name("COLUMN=VALUE");
  verb.add_option("--fix", flags.fixed, "Coefficients to keep at the cluster's values")
      ->type_name("NAME");
  verb.add_option("--name", flags.name, "Name of the curve")->type_name("NAME");
  verb.add_flag("--check", flags.check, "Print the errors of the present coefficients");
}

ExitCode fit_collective_files(const CollectiveFitFlags& flags) {
  if (flags.cluster.empty()) {
    return refuse({wrong_flag("--cluster", "missing", "name the machine that was measured")});
  }
  Result<ClusterSpec> cluster = find_cluster(flags.cluster);
  if (!cluster) return refuse(cluster.problems());
  const Result<std::size_t> tier = tier_of(*cluster, flags.tier);
  if (!tier) return refuse(tier.problems());
  const Result<RowFilter> filter = row_filter(flags.only);
  if (!filter) return refuse(filter.problems());
  std::vector<CollectiveMeasurement> measurements;
  for (const std::string& file : flags.files) {
    const Result<CsvTable> table = read_csv(file);
    if (!table) return refuse(table.problems());
    const auto read = measurements_from_csv(*table, *cluster, *filter);
    if (!read) return refuse(read.problems());
    measurements.insert(measurements.end(), read->begin(), read->end());
  }
  if (measurements.empty()) {
    return refuse({wrong_flag("--only", "no row matches", "")});
  }
  std::set<std::string> fixed;
  for (const std::string& key : flags.fixed) {
    if (!is_coefficient(key)) {
      return refuse({wrong_flag("--fix", fmt::format("{} is not a coefficient", key))});
    }
    fixed.insert(key);
  }
  if (flags.check) {
    print_collective_residuals("points", collective_residuals(*cluster, measurements));
    return ExitCode::done;
  }

  const CollectiveFit fit = fit_collectives(*cluster, *tier, measurements, fixed);
  CollectiveCurve curve = cluster->tiers[*tier].collectives;
  if (!flags.name.empty()) curve.name = flags.name;
  curve.coefficients = fit.coefficients;
  curve.fit.measured = true;
  curve.fit.fitted_on = flags.source;
  curve.fit.method =
      "fastest of algorithms and protocols, soft L1 loss of log time, one point in five left out; "
      "errors on those of 64 KiB and more";
  curve.fit.points = fit.points;
  if (!fit.residuals.empty()) {
    curve.fit.median_error = fit.residuals.front().median_error;
    curve.fit.p95_error = fit.residuals.front().p95_error;
  }
  print_collective_residuals("points left out", fit.residuals);
  if (!flags.output.empty()) write_curve(flags.output, curve);
  return ExitCode::done;
}

}  // namespace shardwise::cli
