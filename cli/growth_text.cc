#include "cli/growth_text.h"

#include <fmt/format.h>

#include "planner/spec/format.h"
#include "planner/spec/json_writer.h"
#include "planner/spec/table.h"

namespace shardwise::cli {
namespace {

void write_side(JsonWriter& json, const char* key, const StepReport& report) {
  json.begin_object(key);
  json.member("step_s", report.step_time.value());
  json.member("mfu", report.mfu);
  json.member("dp_exposed_s", report.time.dp_exposed.value());
  json.end_object();
}

}  // namespace

std::string growth_text(const std::vector<GrowthPoint>& points, bool colour) {
  Table table({{"GPUs"},
               {"full shard"},
               {"MFU"},
               {"exposed"},
               {"hybrid"},
               {"MFU"},
               {"exposed"},
               {"hybrid takes"}});
  for (const GrowthPoint& point : points) {
    table.row(
        {format_count(point.gpus), format_seconds(point.full.step_time),
         format_percent(point.full.mfu), format_seconds(point.full.time.dp_exposed),
         format_seconds(point.hybrid.step_time), format_percent(point.hybrid.mfu),
         format_seconds(point.hybrid.time.dp_exposed),
         fmt::format("{:+.1f} %", 100 * (point.hybrid.step_time / point.full.step_time - 1))});
  }
  return table.text(colour);
}

std::string growth_json(const std::vector<GrowthPoint>& points) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.growth/1");
  json.begin_array("points");
  for (const GrowthPoint& point : points) {
    json.begin_object();
    json.member("gpus", point.gpus);
    write_side(json, "full_shard", point.full);
    write_side(json, "hybrid", point.hybrid);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text();
}

}  // namespace shardwise::cli
