#include "planner/score/score_json.h"

#include "planner/spec/json/json_writer.h"
#include "planner/spec/report/memory_fit.h"

namespace shardwise {
namespace {

void write_overall(JsonWriter& json, std::string_view key, const OverallScore& overall) {
  json.begin_object(key);
  json.member("sources", overall.sources);
  json.member("rows", overall.rows);
  json.member("median_abs_error", overall.median_abs_error);
  json.member("p90_abs_error", overall.p90_abs_error);
  json.member("bias", overall.bias);
  json.end_object();
}

}  // namespace

std::string to_json(const ScoreReport& report) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.score/1");
  json.begin_array("rows");
  for (const ScoredFigure& figure : report.figures) {
    json.begin_object();
    json.member("id", figure.id);
    json.member("quantity", name_of(figure.quantity));
    json.member("engine", figure.engine);
    json.member("architecture", figure.architecture);
    json.member("measured", figure.measured);
    json.member("predicted", figure.predicted);
    json.member("error", figure.error());
    json.begin_array("assumed");
    for (const std::string& text : figure.assumed) json.element(text);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.begin_array("skipped");
  for (const SkippedRow& row : report.skipped) {
    json.begin_object();
    json.member("id", row.id);
    json.member("reason", row.reason);
    json.end_object();
  }
  json.end_array();
  json.begin_array("verdicts");
  for (const JudgedRun& run : report.judged) {
    json.begin_object();
    json.member("id", run.id);
    json.member("ran_out", run.ran_out);
    json.member("fit", name_of(run.fit));
    json.member("needed_gib", run.needed_gib);
    json.member("upper_gib", run.upper_gib);
    json.member("usable_gib", run.usable_gib);
    json.end_object();
  }
  json.end_array();
  json.begin_array("unread_flags");
  for (const FlagUnread& each : report.unread) {
    json.begin_object();
    json.member("flag", each.flag);
    json.member("rows", each.rows);
    json.member("why", each.why);
    json.end_object();
  }
  json.end_array();
  json.begin_array("sources");
  for (const SourceScore& source : report.sources) {
    json.begin_object();
    json.member("source", source.source);
    json.member("quantity", name_of(source.quantity));
    json.member("n", source.errors.n);
    json.member("median_abs_error", source.errors.median_abs_error);
    json.member("p90_abs_error", source.errors.p90_abs_error);
    json.member("bias", source.errors.bias);
    json.end_object();
  }
  json.end_array();
  json.begin_object("overall");
  write_overall(json, "memory", report.memory);
  write_overall(json, "time", report.time);
  json.end_object();
  json.end_object();
  return json.text();
}

}  // namespace shardwise
