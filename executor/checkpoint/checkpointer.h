#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "executor/checkpoint/manifest.h"
#include "executor/checkpoint/rank_part.h"
#include "executor/comm/abort.h"
#include "executor/comm/world.h"

namespace shardwise::exec {

/// Writes checkpoints of a run beside its steps, at most one at a time: what a rank holds is copied
/// between two steps, and written from a thread of its own. Every rank writes a file and has the
/// disk keep it; when all have, rank 0 writes the manifest, gives the folder its name and removes
/// old ones. A checkpoint that cannot be written ends the run with the reason; those before it
/// stay. All ranks make the same calls.
class Checkpointer {
 public:
  /// \param about  what the manifest says besides step, sequence and files
  /// \param keep   complete checkpoints that stay; 0: all
  Checkpointer(std::filesystem::path folder, std::int64_t keep, Manifest about, World& world,
               AbortSignal& abort);
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Begins a checkpoint, once the one before it is complete. \throws Aborted
  void save(const RankState& state, const Arena& arena, Device& device, std::int64_t step,
            std::int64_t sequence);
  /// Waits until the last one is complete. \throws Aborted
  void finish();

 private:
  void write(Manifest manifest, const RankPart& part);
  bool all_did(std::int64_t step, const std::function<void()>& what);

  std::filesystem::path folder_;
  std::int64_t keep_;
  Manifest about_;
  int rank_;
  AbortSignal& abort_;
  std::unique_ptr<ControlGroup> everyone_;
  std::future<void> flying_;
};

}  // namespace shardwise::exec
