// What leaves the program: each file whole or not at all.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "answers/html/make_page.h"
#include "gui/models/explore/columns.h"
#include "gui/models/session/session.h"
#include "planner/files/atomic_file_set.h"
#include "planner/model/parameter_words.h"
#include "planner/question/command_of_plan.h"
#include "planner/question/flags.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/report/memory_fit.h"
#include "planner/spec/report/report_json.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/one_line.h"
#include "simulator/clock/closed_form.h"
#include "simulator/clock/simulate.h"
#include "simulator/traces/trace.h"

namespace shardwise::view {
namespace {

/// As `shardwise simulate` writes them.
std::string report_of(const Plan& plan) {
  sim::Simulation made = sim::simulate(plan);
  made.report.closed_form = sim::beside_closed_form(plan, {}, made.report);
  return report_json(made.report, reported_parameters(plan.model));
}
std::string trace_of(const Plan& plan) { return sim::trace_text(plan, sim::simulate(plan)); }

/// What a command prints in place of a step that a run has corrected; empty where none has.
std::string printed_step(const StepReport& shown) {
  if (shown.time.anchored == Seconds(0)) return "";
  return fmt::format("it prints {}, not calibrated; calibrated, as here, that is {}",
                     format_seconds(shown.step_time - shown.time.anchored),
                     format_seconds(shown.step_time));
}

}  // namespace

std::string Session::save_csv(const std::string& path) {
  return save(path, rows_csv(state_.answer, state_.shown));
}

std::string Session::save_plan(const std::string& path) {
  std::string problem = save(path, to_json(state_.plan));
  std::error_code unknown;
  if (problem.empty() && std::filesystem::is_regular_file(path, unknown)) {
    files_.has_plan(path, state_.plan);
  }
  return problem;
}

std::string Session::save_report(const std::string& path) { return save_step(path, report_of); }
std::string Session::save_trace(const std::string& path) { return save_step(path, trace_of); }

std::string Session::save_step(const std::string& path, std::string (*text_of)(const Plan&)) {
  if (state_.lanes && !state_.lanes->problem.empty()) return state_.lanes->problem;
  failure_ = {files_.problem_of(path), false};
  if (failure_) return failure_.message;
  say("making " + path + " …");
  const auto plan = std::make_shared<const Plan>(state_.plan);
  reader_.post("making " + path, [this, plan, path, text_of](const Worker::Task&) -> Worker::Apply {
    const Tried<bool> tried = try_to<bool>([&]() -> Result<bool> {
      write_file(path, text_of(*plan));
      return true;
    });
    return [this, path, failure = tried.failure] {
      failure_ = failure;
      say(failure ? failure.message : "wrote " + path);
    };
  });
  return "";
}

std::string Session::save_page(const std::string& path) {
  const auto plan = std::make_shared<const Plan>(state_.plan);
  const std::shared_ptr<const Compared> other = state_.compare.other;
  sim::PageFiles files = {files_.file_of(*plan), "", "", path};
  std::string left_out;
  if (other && other->run) {
    files.trace = other->file;
  } else if (other) {
    left_out = one_line(sim::check_measured(other->report, other->file, *plan));
    if (left_out.empty()) files.measured = other->file;
  }
  say("making " + path + " …");
  reader_.post("making " + path,
               [this, plan, other, files, left_out](const Worker::Task&) -> Worker::Apply {
                 sim::PageRequest request;
                 request.plan = plan.get();
                 request.measured = files.measured.empty() ? nullptr : &other->report;
                 request.traced = files.trace.empty() ? nullptr : other->run.get();
                 request.trace_file = files.trace;
                 request.command = sim::command_of(files);
                 request.version = SHARDWISE_VERSION;
                 const auto made = std::make_shared<Result<sim::MadePage>>(sim::make_page(request));
                 return [this, made, path = files.output, left_out] {
                   if (*made) {
                     save(path, (*made)->text);
                   } else {
                     failure_ = {one_line(made->problems()), false};
                   }
                   if (failure_) {
                     say(failure_.message);
                   } else if (!left_out.empty()) {
                     say(fmt::format("wrote {} without what is compared: {}", path, left_out));
                   }
                 };
               });
  return "";
}

std::string Session::copy_command(const std::string& path) {
  const bool simulated = state_.simulated != nullptr;
  const Result<AskedEstimate> asked = asked_of(state_.plan);
  const std::string file = files_.file_of(state_.plan);
  if (!asked && file.empty()) {
    return one_line(asked.problems()) +
           ": save the plan (export.plan FILE), which a command can name";
  }
  const bool simulates = simulated || !asked;
  std::string command = asked && simulates ? simulate_command_of(*asked)
                        : asked            ? command_of(*asked)
                                           : "shardwise simulate " + shell_word(file);
  if (simulates && state_.report.verdict.fit == Fit::does_not_fit) command += " --ignore-memory";
  std::string problem = copy(std::move(command), "the command", path);
  const std::string other = simulates == simulated ? printed_step(state_.best_report())
                                                   : "it simulates, here the step is estimated";
  if (problem.empty() && !other.empty()) say(state_.message + "; " + other);
  return problem;
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
  std::string problem = write(path, text);
  if (problem.empty()) say("wrote " + path);
  return problem;
}

std::string Session::write(const std::string& path, const std::string& text) {
  try {
    failure_ = {files_.problem_of(path), false};
    if (!failure_) write_file(path, text);
  } catch (const IoError& error) {
    failure_ = {error.what(), true};
  }
  return failure_.message;
}

}  // namespace shardwise::view
