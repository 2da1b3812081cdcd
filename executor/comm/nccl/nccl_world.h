#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/nccl/nccl_communicator.h"
#include "executor/comm/nccl/nccl_handle.h"
#include "executor/comm/nccl/nccl_policy.h"
#include "executor/comm/world.h"

namespace shardwise::exec {

/// A job whose ranks have a GPU each: tensors by NCCL, host bytes as in another world.
///
/// All communicators are split from one of all ranks, by their ranks and by what they are for.
/// A thread polls their errors: the first one ends the run with what this rank issued last, and all
/// communicators are aborted, as they are when the run fails elsewhere, so that no kernel waits for
/// a rank that has gone.
class NcclWorld final : public World {
 public:
  /// All ranks call together.
  /// \param gpu  the rank's, which the calling thread has set  \param control  the same ranks;
  /// outlives this \param restart  how often the job has been restarted: ranks of different
  /// attempts never meet \param timeout_s  for what ranks do together on the host \throws
  /// NcclError; IoError when ranks are of different attempts; Aborted
  NcclWorld(const NcclLibrary& library, int gpu, World& control, const NcclPolicy& policy,
            std::int64_t restart, AbortSignal& abort, double timeout_s);
  /// Ends the communicators with the other ranks, or aborts them where the run fails.
  ~NcclWorld() override;

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }
  CommunicatorTraits traits() const override { return NcclCommunicator::kTraits; }
  std::unique_ptr<ControlGroup> control_group(const std::vector<std::int64_t>& ranks,
                                              Control control) override {
    return control_.control_group(ranks, control);
  }
  /// Makes one for several ranks: of one it takes memory and moves nothing (NCCL issue 2363).
  std::unique_ptr<Communicator> communicator(const std::vector<std::int64_t>& ranks,
                                             Stream stream) override;
  /// Registers as the policy says. \pre at an address that 4096 divides
  void register_memory(std::span<std::byte> memory) override;
  /// A line for each communicator and one for the policy.
  std::string describe() const;

 private:
  struct Made {
    std::shared_ptr<NcclHandle> handle;
    std::vector<std::int64_t> ranks;
    std::string purpose;
  };
  /// Memory that NCCL reads and writes at the end of a call, however long after it that is.
  struct Slot {
    std::string name;
    ncclComm_t comm = nullptr;
    bool owned = false;  // by a handle
  };
  struct Registered {
    NcclHandle* handle = nullptr;
    void* buffer = nullptr;
    ncclWindow_t window = nullptr;  // none where the GPUs share no memory
  };

  void make_root(std::int64_t restart);
  std::shared_ptr<NcclHandle> split(const std::vector<std::int64_t>& ranks,
                                    const std::string& name);
  ncclConfig_t config(const Slot& slot) const;
  std::shared_ptr<NcclHandle> handle_of(Slot& slot);
  void add(Made made);
  void watch();
  void end_all();
  void close_all();

  World& control_;
  int exceptions_ = std::uncaught_exceptions();  // under way when this was made
  NcclPolicy policy_;
  NcclContext context_;
  // Memory of the rank's thread. It stays where it is until all communicators have ended.
  std::deque<Slot> slots_;
  std::deque<Registered> registered_;
  std::shared_ptr<NcclHandle> root_;  // of all ranks; none of one

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Made> made_;  // in the order of all ranks; guarded by mutex_
  bool closing_ = false;    // guarded by mutex_
  bool ended_ = false;      // all have been aborted; guarded by mutex_
  std::shared_ptr<void> described_;
  std::shared_ptr<void> raised_;
  std::jthread watch_;
};

}  // namespace shardwise::exec
