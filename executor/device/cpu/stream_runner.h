#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/device/stream.h"
#include "executor/engine/program_runner.h"
#include "executor/status/rank_status.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// Runs programs with a thread for each stream, the caller's for compute.
class StreamRunner : public ProgramRunner {
 public:
  /// \param rank  for messages
  StreamRunner(const std::vector<const StageProgram*>& programs, int rank, AbortSignal& abort);
  ~StreamRunner() override;

  /// Records spans always: they cost nothing here.
  void run(std::size_t program, const OpKernels& kernels, Spans spans) override;
  std::span<const OpSpan> spans() const override;

 private:
  /// Over when its number is that of the run.
  using Done = std::atomic<std::uint64_t>;
  static constexpr std::uint64_t kStopped = UINT64_MAX;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kHistory = 8;
  /// An operation that has ended.
  struct Past {
    std::size_t program = 0;
    std::uint32_t op = kNone;
    std::int64_t end = 0;
  };
  /// State of a stream, read by other threads, and what it did: its own thread writes over the
  /// oldest entry, which is one more than are shown.
  struct Now {
    struct Entry {
      std::atomic<std::size_t> program{0};
      std::atomic<std::uint32_t> op{kNone};
      std::atomic<std::int64_t> end{0};
    };
    std::atomic<std::uint32_t> op{kNone};         // that waits or runs
    std::atomic<std::uint32_t> waits_for{kNone};  // kNone: it runs
    std::atomic<std::int64_t> since{0};
    std::array<Entry, kHistory + 1> past;
    std::atomic<std::size_t> ended{0};  // operations so far
    void remember(std::size_t program, std::uint32_t op, std::int64_t end);
  };

  void serve(Stream stream);
  void run_stream(Stream stream);
  /// \returns whether it was not over
  bool await(std::uint32_t op, std::uint64_t run, Now& now);
  /// \param free_at  when the operation before on its stream ended, 0 for the first
  void run_op(std::uint32_t op, std::int64_t free_at, DeviceStream& stream, Now& now);
  void tell(RankStatus& status);
  StreamStatus status_of(Stream stream, const Now& now) const;
  StreamStatus named(std::size_t program, std::uint32_t op) const;
  std::string describe();
  std::string describe_past() const;
  std::string operation(std::size_t program, std::uint32_t op) const;
  void close();
  void stop();
  void fail(std::uint32_t op, const char* why);

  std::vector<const StageProgram*> programs_;
  int rank_;
  AbortSignal& abort_;
  std::vector<Done> done_;
  std::vector<OpSpan> spans_;
  std::array<DeviceStream, kStreams> streams_;
  std::array<Now, kStreams> now_;
  std::atomic<std::int64_t> changed_at_{0};
  std::atomic<bool> running_{false};
  std::vector<std::vector<std::vector<std::uint32_t>>> by_stream_;  // program, stream

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t run_ = 0;  // guarded by mutex_, like what follows
  std::size_t program_ = 0;
  const OpKernels* kernels_ = nullptr;
  std::size_t working_ = 0;  // threads that have not finished the run
  bool closing_ = false;
  std::shared_ptr<void> stopped_;
  std::shared_ptr<void> watched_;
  std::vector<std::thread> threads_;
};

}  // namespace shardwise::exec
