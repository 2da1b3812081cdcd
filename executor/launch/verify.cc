#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "executor/checkpoint/run_id.h"
#include "executor/checkpoint/verify.h"
#include "executor/launch/command.h"
#include "executor/launch/launcher.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

constexpr const char* kVerifyFooter =
    "Reads every byte of every checkpoint and compares it as a run does that is resumed\n"
    "from it: manifest, lengths, checksums, every weight and optimizer state once.\n"
    "\n"
    "Examples\n"
    "  shardwise-run verify run1\n"
    "  shardwise-run verify run1/step-00000500 --json\n"
    "\n"
    "Exit codes\n"
    "  0 all good   1 something is damaged   2 no checkpoint, or bad use\n"
    "  3 environment failure";

constexpr const char* kVerifySchema = "shardwise.verification/1";

struct VerifyOptions {
  std::string folder;
  bool json = false;
};

std::pair<const char*, Tone> word_of(CheckpointState state) {
  switch (state) {
    case CheckpointState::good:
      return {"good", Tone::good};
    case CheckpointState::damaged:
      return {"damaged", Tone::bad};
    case CheckpointState::skipped:
      return {"skipped", Tone::bad};
    case CheckpointState::unfinished:
      return {"unfinished", Tone::warning};
  }
  return {"", Tone::plain};
}

/// What a checkpoint's line has behind its state.
std::string facts_of(const VerifiedCheckpoint& each) {
  if (each.state == CheckpointState::unfinished) {
    return "being written or removed, or was when a run ended; no run reads it";
  }
  if (each.state != CheckpointState::good) return summary(each.problems);
  std::string text =
      fmt::format("run {}, {} tensors in {} file{}, {}", short_run_id(each.run), each.tensors,
                  each.files, each.files == 1 ? "" : "s", format_bytes(Bytes(each.bytes)));
  for (const std::string& note : each.notes) text += "; " + note;
  return text;
}

void print_line(const VerifiedCheckpoint& each) {
  const auto [word, tone] = word_of(each.state);
  fmt::print("{:13}  {}  {}\n", shown(each.name),
             paint(fmt::format("{:10}", word), tone, isatty(STDOUT_FILENO) != 0), facts_of(each));
  std::fflush(stdout);
}

std::string count_text(const VerifiedFolder& found) {
  std::vector<std::string> counts;
  for (const CheckpointState state : {CheckpointState::good, CheckpointState::damaged,
                                      CheckpointState::skipped, CheckpointState::unfinished}) {
    const std::int64_t count = found.count(state);
    if (count > 0 || state == CheckpointState::good) {
      counts.push_back(fmt::format("{} {}", count, word_of(state).first));
    }
  }
  return fmt::format("{}", fmt::join(counts, ", "));
}

void write_problems(JsonWriter& json, const Diagnostics& problems) {
  json.begin_array("problems");
  for (const Diagnostic& each : problems) {
    json.begin_object();
    json.member("file", each.file);
    json.member("path", each.path);
    json.member("message", each.message);
    json.end_object();
  }
  json.end_array();
}

std::string json_of(const std::string& folder, const VerifiedFolder& found) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", kVerifySchema);
  json.member("folder", folder);
  json.member("all_good", found.all_good());
  write_problems(json, found.problems);
  json.begin_array("checkpoints");
  for (const VerifiedCheckpoint& each : found.checkpoints) {
    json.begin_object();
    json.member("name", each.name);
    json.member("state", word_of(each.state).first);
    if (each.state == CheckpointState::good) {
      json.member("run", each.run);
      json.member("step", each.step);
      json.member("tensors", each.tensors);
      json.member("files", each.files);
      json.member("bytes", each.bytes);
    }
    write_problems(json, each.problems);
    json.begin_array("notes");
    for (const std::string& note : each.notes) json.element(note);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text();
}

int verify(const VerifyOptions& options) {
  // Where a launcher started several processes, the first one does it.
  const Result<Launcher> launcher = find_launcher();
  if (!launcher) return refuse(launcher.problems());
  if (launcher->rank != 0) return kDone;
  std::error_code error;
  if (!std::filesystem::is_directory(options.folder, error)) {
    const bool is_file = !error && std::filesystem::exists(options.folder, error);
    return refuse({wrong_use("FOLDER",
                             fmt::format("{} is {}", options.folder,
                                         is_file ? "a file" : "not there, or cannot be entered"),
                             "name a folder of checkpoints, or one checkpoint's")});
  }
  const VerifiedFolder found =
      verify_checkpoints(options.folder, [&](const VerifiedCheckpoint& each) {
        if (!options.json) print_line(each);
      });
  const bool some = found.count(CheckpointState::good) + found.count(CheckpointState::damaged) > 0;
  if (options.json) {
    fmt::print("{}", json_of(options.folder, found));
  } else {
    if (!found.problems.empty()) fmt::print("{}\n", summary(found.problems));
    if (some) fmt::print("{}: {}\n", shown(options.folder, 400), count_text(found));
  }
  if (!found.all_good()) return kDamaged;
  if (some) return kDone;
  return refuse({wrong_use("FOLDER", fmt::format("{} has no complete checkpoint", options.folder),
                           "name the --checkpoint-dir of a run")});
}

}  // namespace

void add_verify(CLI::App& app, Verb& verb) {
  CLI::App* const added =
      app.add_subcommand("verify", "Check every checkpoint in a folder, without training");
  auto options = std::make_shared<VerifyOptions>();
  added->footer(kVerifyFooter);
  added->add_option("folder", options->folder, "Folder of checkpoints, or one checkpoint")
      ->type_name("FOLDER")
      ->required();
  added->add_flag("--json", options->json, "Print the same facts as JSON");
  added->callback([&verb, options] { verb = [options] { return verify(*options); }; });
}

}  // namespace shardwise::exec
