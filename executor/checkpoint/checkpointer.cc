#include "executor/checkpoint/checkpointer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/comm/failure_line.h"
#include "executor/kernels/start_thread.h"
#include "executor/storage/durable_file.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {

Checkpointer::Checkpointer(std::filesystem::path folder, std::int64_t keep, Manifest about,
                           World& world, AbortSignal& abort)
    : folder_(std::move(folder)),
      keep_(keep),
      about_(std::move(about)),
      rank_(world.rank()),
      abort_(abort) {
  everyone_ = world.control_group(all_ranks(world), Control::checkpoints);
}

Checkpointer::~Checkpointer() = default;

void Checkpointer::save(const RankState& state, const Arena& arena, Device& device,
                        std::int64_t step, std::int64_t sequence) {
  finish();
  Manifest manifest = about_;
  manifest.step = step;
  manifest.sequence = sequence;
  auto task = [this, manifest = std::move(manifest),
               part = copy_rank_part(state, arena, device)]() mutable {
    try {
      write(std::move(manifest), part);
    } catch (const Aborted&) {  // NOLINT(bugprone-empty-catch): who failed has said why
    } catch (const std::exception& broken) {
      abort_.raise(failure_line(rank_, "", broken));
    }
  };
  flying_ = start_thread("the thread that writes checkpoints",
                         [&task] { return std::async(std::launch::async, std::move(task)); });
}

void Checkpointer::finish() {
  if (flying_.valid()) flying_.get();
  abort_.check();
}

/// Whether every rank did its part. Where one could not, what is there of the checkpoint is removed
/// before that rank ends the run.
bool Checkpointer::all_did(std::int64_t step, const std::function<void()>& what) {
  std::exception_ptr broken;
  try {
    what();
  } catch (...) {
    broken = std::current_exception();
  }
  const std::vector<std::string> failed = all_gather_texts(*everyone_, broken ? "failed" : "");
  if (std::ranges::all_of(failed, &std::string::empty)) return true;
  std::error_code ignored;
  if (rank_ == 0) std::filesystem::remove_all(folder_ / partial_name(step), ignored);
  all_gather_texts(*everyone_, "");
  if (broken) std::rethrow_exception(broken);
  return false;
}

void Checkpointer::write(Manifest manifest, const RankPart& part) {
  const std::int64_t step = manifest.step;
  if (!all_did(step, [&] {
        if (rank_ == 0) begin_checkpoint(folder_, step);
      })) {
    return;
  }
  SavedFile own;
  const std::filesystem::path partial = folder_ / partial_name(step);
  if (!all_did(step, [&] { own = write_rank_part(partial, rank_, part); })) return;
  const std::vector<std::string> files = all_gather_texts(*everyone_, to_json(own));
  all_did(step, [&] {
    if (rank_ != 0) return;
    for (const std::string& text : files) {
      const Result<SavedFile> file = parse_saved_file(text);
      SHARDWISE_CHECK(file.ok(), text);
      manifest.files.push_back(*file);
    }
    DurableFile file(partial / kManifestName);
    file.write(to_json(manifest));
    file.finish();
    complete_checkpoint(folder_, step, about_.run);
    remove_old_checkpoints(folder_, step, keep_, about_.run);
  });
}

}  // namespace shardwise::exec
