#include "cli/texts/levers_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "answers/plan_words.h"
#include "cli/texts/report_text.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::cli {
namespace {

using sim::HelpfulChange;

constexpr std::size_t kLongestChange = 40;

std::string price_of(double dollars) { return dollars > 0 ? format_dollars(dollars) : "-"; }

}  // namespace

std::string levers_text(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                        const std::vector<HelpfulChange>& changes, bool colour) {
  const sim::PlanRow& best = answer.best.front();
  Table table({{"change", Align::left}, {"step"}, {"of the step"}, {"GiB"}, {"$/1e9 tok"}});
  table.row({"the best layout as it is", format_seconds(best.step()), "",
             format_gib(best.candidate.cost.point), price_of(best.dollars_per_1e9_tokens)});
  bool estimated = false;
  for (const HelpfulChange& each : changes) {
    if (each.faster < sim::kLeastHelp) continue;
    estimated = estimated || each.estimated;
    table.row({shown(each.text, kLongestChange),
               (each.estimated ? "~ " : "") + format_seconds(each.step),
               {signed_percent(-each.faster), Tone::good},
               format_gib(each.memory),
               price_of(each.dollars_per_1e9_tokens)});
  }
  const std::string heading = sim::question_words(question, *best.cluster, {best.engine});
  std::string text = paint(wrap(heading, kTextWidth), Tone::quiet, colour) + "\n" +
                     paint("What would help most, one change at a time", Tone::strong, colour) +
                     "\n" + table.text(colour);
  if (estimated) {
    text += paint("~: by the step-time model, not simulated", Tone::quiet, colour) + "\n";
  }
  const std::string little = sim::little_help_words(changes);
  if (!little.empty()) text += wrap(little, kTextWidth, 2) + "\n";
  return text;
}

std::string levers_json(const sim::PlanAnswer& answer, const std::vector<HelpfulChange>& changes) {
  const sim::PlanRow& best = answer.best.front();
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.levers/1");
  json.member("engine", best.engine);
  json.member("step_time_s", best.step().value());
  json.member("simulated", best.simulated.has_value());
  json.begin_array("levers");
  for (const HelpfulChange& each : changes) {
    json.begin_object();
    json.member("change", each.text);
    json.member("flags", each.flags);
    json.member("step_time_s", each.step.value());
    json.member("estimated", each.estimated);
    json.member("saved_share", each.faster);
    json.member("memory_bytes", each.memory.value());
    if (each.dollars_per_1e9_tokens > 0) {
      json.member("dollars_per_1e9_tokens", each.dollars_per_1e9_tokens);
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text();
}

}  // namespace shardwise::cli
