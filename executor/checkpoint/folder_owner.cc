#include "executor/checkpoint/folder_owner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/manifest.h"
#include "executor/checkpoint/run_id.h"
#include "executor/storage/durable_file.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/json/regular_file.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunSchema = "shardwise.run/1";
constexpr std::size_t kMostShown = 4;  // runs, and steps of one, of a message

/// The run of run.json, or why it says none.
Result<std::string> recorded_run(const fs::path& folder) {
  const fs::path path = folder / kOwnerName;
  Result<std::string> text = read_regular_file(path, SymbolicLinks::refused);
  if (!text) return text;
  const Result<JsonValue> root = parse_json(*text, path.string());
  if (!root) return root.problems();
  Diagnostics problems;
  ObjectReader reader(*root, path.string(), "", problems);
  reader.require_schema(kRunSchema);
  std::string run = reader.string("run");
  if (problems.empty() && !is_run_id(run)) reader.fail("run", run + " is no name of a run");
  if (!problems.empty()) return problems;
  return run;
}

void record_run(const fs::path& folder, const std::string& run) {
  if (const Result<std::string> recorded = recorded_run(folder); recorded && *recorded == run) {
    return;
  }
  JsonWriter json;
  json.begin_object();
  json.member("schema", kRunSchema);
  json.member("run", run);
  json.end_object();
  DurableFile file(folder / kOwnerName);
  file.write(json.text());
  file.finish();
}

/// "step 10", "steps 10, 20, 30 and 7 more".
std::string steps_text(const std::vector<std::int64_t>& steps) {
  const std::size_t shown = std::min(steps.size(), kMostShown);
  const std::vector<std::int64_t> last(steps.end() - static_cast<std::ptrdiff_t>(shown),
                                       steps.end());
  return fmt::format("step{} {}{}", steps.size() > 1 ? "s" : "",
                     steps.size() > shown ? fmt::format("{} and others to ", steps.front()) : "",
                     fmt::join(last, ", "));
}

std::string text_of(const std::vector<NamedCheckpoint>& checkpoints) {
  std::map<std::string, std::vector<std::int64_t>> steps;
  for (const NamedCheckpoint& each : checkpoints) {
    steps[each.run ? "run " + short_run_id(*each.run) : "an unknown run"].push_back(each.step);
  }
  std::vector<std::string> runs;
  for (const auto& [run, its] : steps) {
    if (runs.size() == kMostShown) break;
    runs.push_back(fmt::format("{} ({})", run, steps_text(its)));
  }
  return fmt::format("{}{}", fmt::join(runs, ", "),
                     steps.size() > runs.size() ? " and other runs" : "");
}

bool has_nothing(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_empty(folder, ignored);
}

/// Checkpoints that keep the claim from the folder, besides later ones of its own.
std::vector<NamedCheckpoint> strangers(const FolderContents& contents, const Claim& claim) {
  std::vector<NamedCheckpoint> found;
  const bool resumed = claim.step > 0;
  const bool own = std::ranges::any_of(contents.checkpoints,
                                       [&](const auto& each) { return each.run == claim.run; });
  for (const NamedCheckpoint& each : contents.checkpoints) {
    if (each.run == claim.run || (!each.run && has_nothing(each.path))) continue;
    // A run that has checkpoints here, or whose folder it is, leaves those of others alone.
    const bool of_owner = contents.recorded ? each.run == contents.owner : !own;
    if (!resumed || of_owner) found.push_back(each);
  }
  return found;
}

}  // namespace

std::string FolderContents::text() const { return text_of(checkpoints); }

FolderContents contents_of(const fs::path& folder) {
  FolderContents contents;
  for (const std::int64_t step : complete_steps(folder)) {
    const fs::path path = folder / complete_name(step);
    contents.checkpoints.push_back({step, path, run_of_checkpoint(path)});
  }
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path name = entry.path().filename();
    const fs::file_status status = entry.symlink_status(error);
    if (fs::is_directory(status) && is_partial(name.string())) {
      contents.partial.push_back(entry.path());
    }
    if (fs::is_directory(status) && is_set_aside(name.string())) {
      contents.set_aside.push_back(entry.path());
    }
    const std::optional<std::int64_t> step = step_in_name(name.string());
    if (!step) continue;
    if (fs::is_symlink(status)) {
      contents.others.push_back({*step, entry.path(), "a symbolic link, which is not followed"});
    } else if (!fs::is_directory(status)) {
      contents.others.push_back({*step, entry.path(), "not a folder"});
    } else if (name != complete_name(*step)) {
      contents.others.push_back({*step, entry.path(),
                                 fmt::format("not named as shardwise-run names checkpoints ({})",
                                             complete_name(*step).string())});
    }
  }
  std::ranges::sort(contents.set_aside);
  std::ranges::sort(contents.partial);
  const Result<std::string> recorded = recorded_run(folder);
  contents.recorded = recorded.ok();
  if (recorded) {
    contents.owner = *recorded;
    return contents;
  }
  if (fs::exists(fs::symlink_status(folder / kOwnerName, error))) {
    contents.problems = recorded.problems();
  }
  for (const NamedCheckpoint& each : contents.checkpoints) {
    if (!each.run) continue;
    if (contents.owner && *contents.owner != *each.run) {
      contents.owner.reset();
      break;
    }
    contents.owner = each.run;
  }
  return contents;
}

Diagnostics claim_folder(const fs::path& folder, const Claim& claim) {
  const fs::path owner = folder / kOwnerName;
  std::error_code ignored;
  if (fs::is_symlink(fs::symlink_status(owner, ignored))) {
    return {{owner.string(), 0, 0, "--checkpoint-dir",
             "a symbolic link, which is not followed here",
             "shardwise-run keeps the name of the folder's run there; remove it"}};
  }
  const FolderContents contents = contents_of(folder);
  const std::vector<NamedCheckpoint> others = strangers(contents, claim);
  std::vector<std::int64_t> later;
  for (const NamedCheckpoint& each : contents.checkpoints) {
    if (!claim.latest && each.run == claim.run && each.step > claim.step) {
      later.push_back(each.step);
    }
  }
  if (claim.replaces) {
    std::vector<std::int64_t> gone = later;
    for (const NamedCheckpoint& each : others) gone.push_back(each.step);
    // First the name: should the run end here, nobody takes what is left for the new run's.
    record_run(folder, claim.run);
    remove_checkpoints(folder, gone);
    return {};
  }
  Diagnostics problems;
  const auto refuse = [&](std::string message, std::string hint) {
    problems.push_back(
        {folder.string(), 0, 0, "--checkpoint-dir", std::move(message), std::move(hint)});
  };
  if (!others.empty()) {
    refuse(fmt::format("has checkpoints of another run: {}", text_of(others)),
           "add --resume latest to continue that run, name another folder, or remove them with "
           "--replace-checkpoints");
  }
  if (!later.empty()) {
    refuse(fmt::format("has later checkpoints of this run than step {}: {}", claim.step,
                       steps_text(later)),
           "add --resume latest, name another folder, or remove them with "
           "--replace-checkpoints");
  }
  if (problems.empty()) record_run(folder, claim.run);
  return problems;
}

}  // namespace shardwise::exec
