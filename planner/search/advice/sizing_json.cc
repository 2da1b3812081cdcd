#include "planner/search/advice/sizing_json.h"

#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

void write_borrowed(JsonWriter& json, std::string_view key,
                    const std::vector<BorrowedCurve>& borrowed) {
  json.begin_array(key);
  for (const BorrowedCurve& each : borrowed) {
    json.begin_object();
    json.member("curve", each.words);
    json.member("stand_in", name_of(each.stand_in));
    json.member("method", each.method);
    json.member("decides", each.decides);
    json.end_object();
  }
  json.end_array();
}

void write_offers(JsonWriter& json, std::string_view key, const std::vector<SizingOffer>& offers) {
  json.begin_array(key);
  for (const SizingOffer& offer : offers) {
    const StepReport& report = offer.report;
    json.begin_object();
    json.member("cluster", offer.cluster);
    json.member("gpu", offer.gpu);
    json.member("gpus", offer.gpus);
    json.member("engine", report.engine);
    json.begin_object("layout");
    write_fields(json, report.layout);
    json.end_object();
    json.member("wall_days", offer.wall.value() / 86400);
    json.member("gpu_hours", offer.gpu_hours);
    if (offer.dollars > 0) {
      json.member("cost_usd", offer.dollars);
    } else {
      json.null_member("cost_usd");
    }
    json.member("step_time_s", report.step_time.value());
    json.member("tokens_per_s", report.tokens_per_s);
    json.member("mfu", report.mfu);
    json.member("goodput", offer.goodput.share);
    json.member("checkpoint_interval_s", offer.goodput.interval.value());
    json.member("lost_to_failures", offer.goodput.lost);
    json.member("spent_on_checkpoints", offer.goodput.saving);
    json.member("memory_headroom", offer.headroom);
    json.member("in_time", offer.in_time);
    json.member("on_defaults", !offer.measured);
    write_borrowed(json, "not_measured", offer.borrowed);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string to_json(const Sizing& sizing, const SizingGoal& goal, const ReportedParameters& model) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.sizing/1");
  if (model.parameters > 0) {
    json.member("parameters", model.parameters);
    json.member("active_parameters", model.active_parameters);
  }
  json.member("tokens", goal.tokens);
  json.member("deadline_days", goal.deadline.value() / 86400);
  json.member("restart_s", goal.restart.value());
  write_offers(json, "offers", sizing.offers);
  write_offers(json, "late", sizing.late);
  json.begin_array("refusals");
  for (const SizingRefusal& refusal : sizing.refusals) {
    json.begin_object();
    json.member("cluster", refusal.cluster);
    json.member("reason", refusal.reason);
    json.end_object();
  }
  json.end_array();
  json.begin_array("assumptions");
  for (const Assumption& assumption : sizing.assumptions) {
    json.begin_object();
    json.member("id", assumption.id);
    json.member("text", assumption.text);
    json.member("source", assumption.source);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text();
}

}  // namespace shardwise
