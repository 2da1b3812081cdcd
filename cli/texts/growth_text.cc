#include "cli/texts/growth_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "planner/spec/json/json_writer.h"
#include "planner/spec/report/memory_fit.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

void write_sharding(JsonWriter& json, const char* key, const StepReport& report) {
  json.begin_object(key);
  json.member("step_s", report.step_time.value());
  json.member("mfu", report.mfu);
  json.member("dp_exposed_s", report.time.dp_exposed.value());
  json.member("fit", name_of(report.verdict.fit));
  json.end_object();
}

/// On how many GPUs one of the two ways does not fit; empty where it always does.
std::string misfits_text(const char* way, const std::vector<std::int64_t>& gpus) {
  std::vector<std::string> counts;
  for (const std::int64_t each : gpus) counts.push_back(format_count(each));
  return counts.empty()
             ? ""
             : fmt::format("Does not fit: {} on {} GPUs\n", way, fmt::join(counts, ", "));
}

}  // namespace

std::string growth_text(const std::vector<sim::GrowthPoint>& points, bool colour) {
  Table table({{"GPUs"},
               {"full shard"},
               {"MFU"},
               {"lost to dp"},
               {"hybrid"},
               {"MFU"},
               {"lost to dp"},
               {"hybrid takes"}});
  for (const sim::GrowthPoint& point : points) {
    table.row({format_count(point.gpus), format_seconds(point.full.step_time),
               format_percent(point.full.mfu), format_seconds(point.full.time.dp_exposed),
               format_seconds(point.hybrid.step_time), format_percent(point.hybrid.mfu),
               format_seconds(point.hybrid.time.dp_exposed),
               signed_percent(point.hybrid.step_time / point.full.step_time - 1)});
  }
  const std::string notes =
      misfits_text("full shard", sim::misfits(points, &sim::GrowthPoint::full)) +
      misfits_text("hybrid", sim::misfits(points, &sim::GrowthPoint::hybrid));
  return table.text(colour) + (notes.empty() ? "" : paint(notes, Tone::bad, colour));
}

std::string growth_json(const std::vector<sim::GrowthPoint>& points) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.growth/1");
  json.begin_array("points");
  for (const sim::GrowthPoint& point : points) {
    json.begin_object();
    json.member("gpus", point.gpus);
    write_sharding(json, "full_shard", point.full);
    write_sharding(json, "hybrid", point.hybrid);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text();
}

}  // namespace shardwise::cli
