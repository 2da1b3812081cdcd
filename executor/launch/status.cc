#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "executor/checkpoint/folder_lock.h"
#include "executor/launch/command.h"
#include "executor/launch/launcher.h"
#include "executor/status/find_jobs.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

constexpr const char* kStatusFooter =
    "Asks the processes of live jobs on this machine, which answer their own user and root.\n"
    "Without a name: one line for each job. With one: what each of its ranks does.\n"
    "\n"
    "Examples\n"
    "  shardwise-run status\n"
    "  shardwise-run status run1 --json\n"
    "\n"
    "Exit codes\n"
    "  0 all answer   1 a job or a rank is silent, or a silent one may be the job\n"
    "  2 no such job, or bad use   3 environment failure";

/// Digits of a job's number that people see and type, at least.
constexpr std::size_t kShortJob = 8;
constexpr std::size_t kFewestDigits = 4;

struct StatusOptions {
  std::string name;
  bool json = false;
};

bool colour() { return isatty(STDOUT_FILENO) != 0; }

std::string user_text(std::int64_t user) {
  const passwd* const entry = ::getpwuid(static_cast<uid_t>(user));
  return entry == nullptr ? std::to_string(user) : shown(entry->pw_name);
}

std::string step_text(const RankStatus& rank) {
  if (rank.steps == 0) return "-";
  return fmt::format("{}/{}", rank.step, rank.steps);
}

std::string what_text(const JobStatus& job) {
  return shown(job.plan.empty() ? job.verb : fmt::format("{} {}", job.verb, job.plan), 120);
}

/// "answers", "rank 2 is silent".
Cell state_of(const JobStatus& job) {
  if (!job.answers) return {"does not answer", Tone::bad};
  std::vector<std::int32_t> silent;
  for (const RankStatus& each : job.ranks) {
    if (each.answer == Answer::silent || each.answer == Answer::gone) silent.push_back(each.rank);
  }
  if (silent.empty())
    return job.ranks.empty() ? "" : std::string(shardwise::name_of(job.ranks[0].phase));
  if (silent.size() == 1) return {fmt::format("rank {} is silent", silent[0]), Tone::bad};
  return {fmt::format("{} ranks are silent", silent.size()), Tone::bad};
}

/// A line for each job.
std::string list_text(const std::vector<JobStatus>& jobs) {
  Table table({{"job", Align::left},
               {"process"},
               {"user", Align::left},
               {"what", Align::left},
               {"ranks"},
               {"step"},
               {"state", Align::left}});
  for (const JobStatus& job : jobs) {
    const bool known = job.answers && !job.ranks.empty();
    table.row({job.job.substr(0, kShortJob), std::to_string(job.process), user_text(job.user),
               what_text(job), known ? std::to_string(job.ranks.size()) : "-",
               known ? step_text(job.ranks[0]) : "-", state_of(job)});
  }
  return table.text(colour());
}

std::string does_text(const StreamStatus& stream) {
  std::string text = shown(whole_name(stream), 120);
  if (!stream.waits_for.empty()) text += " waits for " + shown(stream.waits_for);
  return text;
}

void add_rank(Table& table, const RankStatus& rank) {
  std::vector<Cell> begin = {std::to_string(rank.rank), shown(rank.host),
                             std::to_string(rank.process)};
  const auto add = [&](std::vector<Cell> cells) {
    std::vector<Cell> row = begin;
    row.insert(row.end(), cells.begin(), cells.end());
    table.row(std::move(row));
    begin.assign(begin.size(), "");
  };
  const auto span = [](double seconds) { return format_seconds(Seconds(seconds)); };
  if (rank.answer == Answer::over) return add({"ended", "", "", "", ""});
  if (rank.answer == Answer::gone) return add({Cell("gone", Tone::bad), "", "", "", ""});
  if (rank.answer == Answer::silent) {
    add({Cell("silent, before:", Tone::bad), "", "", "", Cell(span(rank.heard_s), Tone::bad)});
  }
  const std::string phase(shardwise::name_of(rank.phase));
  std::vector<Cell> first = {phase, step_text(rank)};
  for (const StreamStatus& stream : rank.streams) {
    if (stream.operation.empty()) continue;
    std::vector<Cell> cells = first;
    cells.insert(cells.end(), {shown(stream.stream), does_text(stream), span(stream.since_s)});
    add(std::move(cells));
    first = {"", ""};
  }
  if (first[0].text.empty()) return;
  add({phase, step_text(rank), "", "", span(rank.since_s)});
}

/// A job and what its ranks do.
std::string job_text(const JobStatus& job) {
  std::string text =
      fmt::format("job {}, {}process {} of {}", job.job, job.answers ? what_text(job) + ", " : "",
                  job.process, user_text(job.user));
  if (!job.answers) return text + ": does not answer; it is stopped, or about to begin or end\n";
  if (job.launcher > 0) text += fmt::format(", started by {}", job.launcher);
  text += fmt::format(", for {}\n", format_seconds(Seconds(job.age_s)));
  if (!job.folder.empty()) text += fmt::format("checkpoints in {}\n", shown(job.folder, 400));
  Table table({{"rank"},
               {"host", Align::left},
               {"process"},
               {"phase", Align::left},
               {"step"},
               {"stream", Align::left},
               {"operation", Align::left},
               {"for"}});
  for (const RankStatus& rank : job.ranks) add_rank(table, rank);
  return text + table.text(colour());
}

/// The number of a process that a text is; 0 where it is none.
std::int32_t process_of(const std::string& name) {
  std::int32_t process = 0;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data(), end, process);
  return read.ec == std::errc() && read.ptr == end && process > 0 ? process : 0;
}

bool is_named(const JobStatus& job, const std::string& name) {
  if (name.size() >= kFewestDigits && job.job.starts_with(name)) return true;
  if (const std::int32_t process = process_of(name); process > 0) {
    if (process == job.process || process == job.launcher) return true;
    if (std::ranges::find(job.ranks, process, &RankStatus::process) != job.ranks.end()) return true;
  }
  std::error_code none;
  return !job.folder.empty() && std::filesystem::equivalent(name, job.folder, none) && !none;
}

/// Of a job that does not answer nothing is known but its number and one of its processes. Whether
/// it may be the one of a process or of a folder that are there.
bool may_be_named(const JobStatus& job, const std::string& name) {
  if (job.answers) return false;
  if (const std::int32_t process = process_of(name); process > 0) {
    return ::kill(process, 0) == 0 || errno == EPERM;
  }
  std::error_code none;
  if (!std::filesystem::is_directory(name, none)) return false;
  const std::optional<pid_t> holder = process_that_locks(name);
  return !holder || *holder == job.process;
}

int status(const StatusOptions& options) {
  // Where a launcher started several processes, the first one does it.
  const Result<Launcher> launcher = find_launcher();
  if (!launcher) return refuse(launcher.problems());
  if (launcher->rank != 0) return kDone;
  std::vector<JobStatus> jobs = find_jobs();
  bool guessed = false;
  if (!options.name.empty()) {
    std::vector<JobStatus> silent = jobs;
    std::erase_if(jobs, [&](const JobStatus& job) { return !is_named(job, options.name); });
    if (jobs.empty()) {
      std::erase_if(silent, [&](const JobStatus& job) { return !may_be_named(job, options.name); });
      guessed = !silent.empty();
      jobs = std::move(silent);
    }
    if (jobs.empty()) {
      return refuse({wrong_use("JOB", fmt::format("no live job is {}", shown(options.name, 400)),
                               "shardwise-run status lists those of this user on this machine")});
    }
  }
  if (options.json) {
    fmt::print("{}", json_of(jobs));
  } else if (jobs.empty()) {
    fmt::print("no job of this user runs on this machine\n");
  } else if (options.name.empty()) {
    fmt::print("{}", list_text(jobs));
  } else {
    if (guessed) {
      fmt::print("{} that {} not answer may be {}\n", jobs.size() == 1 ? "a job" : "jobs",
                 jobs.size() == 1 ? "does" : "do", shown(options.name, 400));
    }
    for (const JobStatus& job : jobs) fmt::print("{}", job_text(job));
  }
  return std::ranges::all_of(jobs, &JobStatus::all_answer) ? kDone : kSilent;
}

}  // namespace

void add_status(CLI::App& app, Verb& verb) {
  CLI::App* const added =
      app.add_subcommand("status", "Say what each rank of a live job does, without stopping it");
  auto options = std::make_shared<StatusOptions>();
  added->footer(kStatusFooter);
  added
      ->add_option("job", options->name,
                   "Job: its number or its begin, a process of it, or its folder of checkpoints")
      ->type_name("JOB");
  added->add_flag("--json", options->json, "Print the same facts as JSON");
  added->callback([&verb, options] { verb = [options] { return status(*options); }; });
}

}  // namespace shardwise::exec
