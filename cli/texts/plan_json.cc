#include "answers/plan_words.h"
#include "cli/texts/plan_text.h"
#include "planner/model/parameter_words.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/report/report_fields.h"

namespace shardwise::cli {
namespace {

/// Ends of the intervals of a row's step and of its memory in nvidia-smi.
void write_ends(JsonWriter& json, const sim::PlanRow& row) {
  const ReportIntervals known = sim::intervals_of(row);
  if (known.step.known()) {
    json.member("step_time_low_s", row.step().value() * known.step.low);
    json.member("step_time_high_s", row.step().value() * known.step.high);
  }
  if (known.nvidia_smi.known()) {
    const Bytes point = row.candidate.cost.point;
    json.member("memory_low_bytes", times(point, known.nvidia_smi.low).value());
    json.member("memory_high_bytes", times(point, known.nvidia_smi.high).value());
  }
}

void write_row(JsonWriter& json, const sim::PlanRow& row) {
  json.member("engine", row.engine);
  json.member("gpus", row.cluster->gpus);
  json.member("step_time_s", row.candidate.cost.step_time.value());
  if (row.simulated) {
    json.member("simulated_step_time_s", row.simulated->value());
  } else {
    json.null_member("simulated_step_time_s");
  }
  json.member("memory_bytes", row.candidate.cost.point.value());
  json.member("memory_upper_bytes", row.candidate.cost.upper.value());
  json.member("memory_needed_bytes", row.candidate.cost.needed.value());
  write_ends(json, row);
  json.member("mfu", row.mfu);
  json.member("tokens_per_s", row.tokens_per_s);
  if (row.dollars_per_1e9_tokens > 0) {
    json.member("dollars_per_1e9_tokens", row.dollars_per_1e9_tokens);
    json.member("tokens_per_dollar", 1e9 / row.dollars_per_1e9_tokens);
  }
  json.begin_object("layout");
  write_fields(json, row.candidate.layout);
  json.end_object();
}

void write_rows(JsonWriter& json, std::string_view key, const std::vector<sim::PlanRow>& rows) {
  json.begin_array(key);
  for (const sim::PlanRow& row : rows) {
    json.begin_object();
    write_row(json, row);
    json.member("tied_with_best", row.tied);
    json.end_object();
  }
  json.end_array();
}

/// What each engine gives, and which was taken.
void write_engines(JsonWriter& json, const sim::PlanQuestion& question,
                   const sim::PlanAnswer& answer) {
  if (question.takes_engine && !answer.best.empty()) {
    json.member("engine_taken", answer.best.front().engine);
  } else {
    json.null_member("engine_taken");
  }
  json.begin_array("engines");
  for (const sim::EngineAnswer& each : answer.engines) {
    json.begin_object();
    json.member("engine", each.engine->name);
    json.begin_array("refused");
    for (const Diagnostic& problem : each.refused) {
      json.element(std::string_view(problem.path + ": " + problem.message));
    }
    json.end_array();
    if (each.best) {
      json.begin_object("best");
      write_row(json, *each.best);
      json.end_object();
    } else {
      json.null_member("best");
    }
    json.end_object();
  }
  json.end_array();
}

/// By what the rows rank, and the band in which they tie.
void write_ranking(JsonWriter& json, const sim::PlanAnswer& answer) {
  const bool simulated = !answer.best.empty() && answer.best.front().simulated.has_value();
  json.member("ranked_by_step", simulated ? "simulated" : "step_time_model");
  json.member("not_simulated_because", answer.unsimulated);
  const ErrorInterval& tie = answer.tie;
  if (!tie.known()) {
    json.null_member("tie_band");
    return;
  }
  json.begin_object("tie_band");
  json.member("share", 1 / tie.low - 1);
  json.member("level", kIntervalLevel);
  json.member("family", tie.family);
  json.member("architecture", tie.architecture);
  json.member("pairs", tie.rows / 2);
  json.member("sources", tie.sources);
  json.member("source", "configs/intervals.json");
  json.end_object();
}

/// How much faster than the best row any layout that fits may be.
void write_certificate(JsonWriter& json, const sim::PlanAnswer& answer,
                       const sim::Certificate* proved) {
  if (proved == nullptr) return json.null_member("proved");
  json.begin_object("proved");
  json.member("faster_at_most", proved->faster);
  json.member("step_s", answer.best.front().step().value());
  json.member("layouts", proved->valid);
  json.member("simulated", proved->simulated);
  if (proved->fastest) {
    json.begin_object("faster");
    write_row(json, *proved->fastest);
    json.end_object();
  } else {
    json.null_member("faster");
  }
  json.end_object();
}

void write_counts(JsonWriter& json, const sim::PlanAnswer& answer) {
  json.begin_array("counts");
  for (const sim::EngineAnswer& each_engine : answer.engines) {
    const SearchCounts& counts = each_engine.counts;
    json.begin_object();
    json.member("engine", each_engine.engine->name);
    json.member("enumerated", counts.space.enumerated);
    json.member("pruned", counts.space.pruned_total());
    json.member("legal", counts.space.legal);
    json.member("does_not_fit", counts.does_not_fit);
    json.member("at_risk", counts.at_risk);
    json.member("too_slow", counts.too_slow);
    json.member("ranked", counts.ranked);
    json.begin_array("pruned_by");
    for (const RuleCount& each : counts.space.pruned) {
      if (each.layouts == 0) continue;
      json.begin_object();
      json.member("rule", each.rule->id);
      json.member("text", each.rule->text);
      json.member("same_as_another", each.rule->redundant);
      json.member("layouts", each.layouts);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void write_memory(JsonWriter& json, const StepReport& report, std::string_view key) {
  const Verdict& verdict = report.verdict;
  const Ledger& ledger =
      report.stages[static_cast<std::size_t>(verdict.worst_stage)][verdict.worst_phase];
  json.begin_object(key);
  json.member("stage", verdict.worst_stage);
  json.member("phase", name_of(verdict.worst_phase));
  for (std::size_t c = 0; c < kMemoryCategories; ++c) {
    const auto category = static_cast<MemoryCategory>(c);
    json.member(std::string(name_of(category)) + "_bytes", ledger[category]);
  }
  json.member("total_bytes", ledger.total().value());
  json.end_object();
}

void write_time(JsonWriter& json, const TimeParts& time) {
  for (const TimePart& part : kTimeParts) {
    json.member(std::string(part.key) + "_s", (time.*part.field).value());
  }
}

void write_layout_report(JsonWriter& json, std::string_view key, const StepReport& report) {
  json.begin_object(key);
  json.member("engine", report.engine);
  json.member("step_time_s", report.step_time.value());
  json.member("memory_bytes", report.verdict.point.value());
  json.member("memory_upper_bytes", report.verdict.upper.value());
  json.member("memory_needed_bytes", report.verdict.needed.value());
  json.member("usable_bytes", report.verdict.usable.value());
  json.begin_object("layout");
  write_fields(json, report.layout);
  json.end_object();
  json.begin_object("time");
  write_time(json, report.time);
  json.end_object();
  write_memory(json, report, "memory");
  json.end_object();
}

}  // namespace

std::string why_not_json(const WhyNot& answer) {
  constexpr std::array<std::string_view, 4> kAnswers = {"illegal", "does_not_fit", "slower",
                                                        "best"};
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.why_not/1");
  json.member("answer", kAnswers[static_cast<std::size_t>(answer.answer)]);
  json.member("layouts", answer.layouts);
  json.member("ranked", answer.ranked);
  json.begin_array("reasons");
  for (const Diagnostic& each : answer.reasons) {
    json.begin_object();
    json.member("flag", each.path);
    json.member("message", each.message);
    json.member("hint", each.hint);
    json.end_object();
  }
  json.end_array();
  write_layout_report(json, "best", answer.winner);
  if (answer.answer != WhyNot::Answer::illegal) write_layout_report(json, "asked", answer.other);
  json.end_object();
  return json.text();
}

std::string plan_json(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                      const StepReport* report, const sim::Certificate* proved) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", "shardwise.search/1");
  json.member("model", question.model.name);
  const ReportedParameters counts = reported_parameters(question.model);
  json.member("parameters", counts.parameters);
  json.member("active_parameters", counts.active_parameters);
  json.member("cluster", question.clusters.front().name);
  json.member("rank_by", sim::kObjectiveNames[static_cast<std::size_t>(question.objective)]);
  json.member("space", sim::kBreadthNames[static_cast<std::size_t>(question.breadth)]);
  json.member("usable_bytes", answer.usable.value());
  json.begin_object("job");
  write_fields(json, question.job);
  json.end_object();
  json.begin_array("assumed");
  for (const Assumption& each : question.assumptions) json.element(std::string_view(each.text));
  json.end_array();
  write_counts(json, answer);
  write_engines(json, question, answer);
  write_ranking(json, answer);
  write_certificate(json, answer, proved);
  json.begin_array("held");
  for (const std::string& each : answer.held) json.element(std::string_view(each));
  json.end_array();
  write_rows(json, "best", answer.best);
  write_rows(json, "front", answer.front);
  if (report != nullptr) {
    write_memory(json, *report, "memory_of_best");
    json.begin_object("time_of_best");
    write_time(json, report->time);
    json.end_object();
  } else {
    write_rows(json, "smallest", answer.nothing.nearest);
    if (answer.nothing.way_out || answer.nothing.more_gpus) {
      json.member("cheapest_change", sim::way_out_words(answer.nothing));
    } else {
      json.null_member("cheapest_change");
    }
  }
  json.end_object();
  return json.text();
}

}  // namespace shardwise::cli
