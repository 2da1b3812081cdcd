// What leaves the program: each file whole or not at all.
#include <memory>
#include <utility>

#include "gui/models/columns.h"
#include "gui/models/session.h"
#include "planner/files/atomic_file_set.h"
#include "planner/model/parameter_words.h"
#include "planner/question/command_of_plan.h"
#include "planner/question/flags.h"
#include "planner/spec/error.h"
#include "planner/spec/json_writer.h"
#include "planner/spec/names.h"
#include "planner/spec/plan_fields.h"
#include "planner/spec/report_json.h"
#include "simulator/closed_form.h"
#include "simulator/html/make_page.h"
#include "simulator/simulate.h"
#include "simulator/trace.h"

namespace shardwise::view {

std::string Session::save_csv(const std::string& path) {
  return save(path, rows_csv(state_.answer, state_.shown));
}

std::string Session::save_plan(const std::string& path) { return save(path, to_json(state_.plan)); }

std::string Session::save_report(const std::string& path) {
  if (state_.lanes && !state_.lanes->problem.empty()) return state_.lanes->problem;
  sim::Simulation made = sim::simulate(state_.plan);
  made.report.closed_form = sim::beside_closed_form(state_.plan, {}, made.report);
  return save(path, report_json(made.report, reported_parameters(state_.plan.model)));
}

std::string Session::save_trace(const std::string& path) {
  if (state_.lanes && !state_.lanes->problem.empty()) return state_.lanes->problem;
  return save(path, sim::trace_text(state_.plan, sim::simulate(state_.plan)));
}

std::string Session::save_page(const std::string& path) {
  const auto plan = std::make_shared<const Plan>(state_.plan);
  say("making " + path + " …");
  worker_.post("page", [this, plan, path](const Worker::Task&) -> Worker::Apply {
    sim::PageRequest request;
    request.plan = plan.get();
    request.command = "shardwise report plan.json -o " + shell_word(path);
    request.version = SHARDWISE_VERSION;
    const auto made = std::make_shared<Result<sim::MadePage>>(sim::make_page(request));
    return [this, made, path] {
      const std::string problem =
          *made ? save(path, (*made)->text) : (*made).problems().front().message;
      if (!problem.empty()) say(problem);
    };
  });
  return "";
}

std::string Session::copy_command(const std::string& path) {
  const Result<AskedEstimate> asked = asked_of(state_.plan);
  if (!asked) {
    const Diagnostic& problem = asked.problems().front();
    return problem.message + (problem.hint.empty() ? "" : ": " + problem.hint);
  }
  return copy(command_of(*asked), "the command", path);
}

std::string Session::copy_json(const std::string& path) {
  const StepReport& report = state_.report;
  JsonWriter json;
  json.begin_object();
  json.begin_object("layout");
  write_fields(json, report.layout);
  json.end_object();
  json.member("fit", name_of(report.verdict.fit));
  json.member("memory_bytes", report.verdict.point.value());
  json.member("usable_bytes", report.verdict.usable.value());
  json.member("step_s", report.step_time.value());
  json.member("mfu", report.mfu);
  json.member("tokens_per_s", report.tokens_per_s);
  json.end_object();
  return copy(json.text(), "the layout", path);
}

std::string Session::copy(std::string text, const std::string& what, const std::string& path) {
  if (!path.empty()) return save(path, text.ends_with('\n') ? text : text + "\n");
  say("copied " + what + (what == "the command" ? ": " + text : ""));
  state_.exploring.copied = std::move(text);
  return "";
}

std::string Session::save(const std::string& path, const std::string& text) {
  try {
    write_file(path, text);
  } catch (const IoError& error) {
    return error.what();
  }
  say("wrote " + path);
  return "";
}

}  // namespace shardwise::view
