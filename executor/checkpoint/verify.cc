#include "executor/checkpoint/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/folder_owner.h"
#include "executor/checkpoint/run_id.h"
#include "executor/checkpoint/saved_checkpoint.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

/// Files of a checkpoint's folder that its manifest does not list: "notes.txt, a, b and 4 more".
std::string unlisted(const fs::path& folder, const Manifest& manifest) {
  constexpr std::size_t kNamed = 3;
  std::set<std::string> listed = {kManifestName};
  for (const SavedFile& file : manifest.files) listed.insert(file.name);
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!listed.contains(name)) names.push_back(shown(name));
  }
  std::ranges::sort(names);
  const std::size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

/// \param step  that it has to be of, where its name says it
VerifiedCheckpoint verified(const fs::path& path, std::optional<std::int64_t> step) {
  VerifiedCheckpoint found;
  found.name = path.filename().string();
  try {
    const Result<SavedCheckpoint> saved = SavedCheckpoint::open(path, step);
    found.problems = saved ? saved->altered(0, 1) : saved.problems();
    if (saved) {
      const Manifest& manifest = saved->manifest();
      found.run = manifest.run;
      found.step = manifest.step;
      found.tensors = std::ssize(manifest.tensors);
      found.files = std::ssize(manifest.files);
      for (const SavedFile& file : manifest.files) found.bytes += file.bytes;
      const std::string extra = unlisted(path, manifest);
      if (!extra.empty()) {
        found.notes.push_back(fmt::format("not in the manifest, and never read: {}", extra));
      }
    }
  } catch (const IoError& broken) {
    found.problems = {{path.string(), 0, 0, "", broken.what(), ""}};
  }
  if (!found.problems.empty()) found.state = CheckpointState::damaged;
  return found;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// One of another run than the folder's: --resume does not look at it, good as it is.
void skip_other_runs(const fs::path& path, const FolderContents& contents,
                     VerifiedCheckpoint& found) {
  if (!contents.owner || found.run == *contents.owner) return;
  if (found.state != CheckpointState::good) return;
  found.state = CheckpointState::skipped;
  found.problems = {
      {path.string(), 0, 0, "",
       fmt::format(
           "is of run {}, but the folder's run.json names {}, whose --resume latest skips it",
           short_run_id(found.run), short_run_id(*contents.owner)),
       ""}};
}

}  // namespace

std::int64_t VerifiedFolder::count(CheckpointState state) const {
  return std::ranges::count(checkpoints, state, &VerifiedCheckpoint::state);
}

bool VerifiedFolder::all_good() const {
  return problems.empty() && count(CheckpointState::damaged) == 0 &&
         count(CheckpointState::skipped) == 0;
}

VerifiedFolder verify_checkpoints(const fs::path& folder,
                                  const std::function<void(const VerifiedCheckpoint&)>& each) {
  VerifiedFolder all;
  const auto add = [&](VerifiedCheckpoint found) {
    if (each) each(found);
    all.checkpoints.push_back(std::move(found));
  };
  // "run1/step-00000020/" has no last name of its own.
  const fs::path whole = folder.has_filename() ? folder : folder.parent_path();
  const std::optional<std::int64_t> own = step_in_name(whole.filename().string());
  if (own || is_there(folder / kManifestName)) {
    const bool named = own && whole.filename() == complete_name(*own);
    add(verified(whole, named ? own : std::nullopt));
    return all;
  }
  const FolderContents contents = contents_of(folder);
  all.problems = contents.problems;
  const auto read = [&](const fs::path& path, std::optional<std::int64_t> step) {
    VerifiedCheckpoint found = verified(path, step);
    // A run removed it while it was read.
    if (found.state == CheckpointState::damaged && !is_there(path)) return;
    if (step) skip_other_runs(path, contents, found);
    add(std::move(found));
  };
  for (const NamedCheckpoint& named : contents.checkpoints) read(named.path, named.step);
  for (const fs::path& aside : contents.set_aside) read(aside, std::nullopt);
  for (const PassedOver& other : contents.others) {
    VerifiedCheckpoint found;
    found.name = other.path.filename().string();
    found.state = CheckpointState::skipped;
    found.problems = {{other.path.string(), 0, 0, "", other.why, ""}};
    add(std::move(found));
  }
  for (const fs::path& partial : contents.partial) {
    VerifiedCheckpoint found;
    found.name = partial.filename().string();
    found.state = CheckpointState::unfinished;
    add(std::move(found));
  }
  return all;
}

}  // namespace shardwise::exec
