#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/device/stream.h"
#include "planner/spec/program/step_program.h"

namespace shardwise::exec {

/// When an operation ran, nanoseconds of the machine's steady clock.
struct OpSpan {
  std::int64_t begin = 0;
  std::int64_t ready = 0;  // what it computes before it meets other ranks was done
  std::int64_t met = 0;    // the last of these was ready (find_meetings()); until then as `ready`
  std::int64_t end = 0;
};

/// Kernel that an operation of a program issues to its stream.
struct OpKernel {
  using Issue = std::function<void(DeviceStream& stream)>;
  OpKernel() = default;
  template <class F>
  OpKernel(F f) : run(std::move(f)) {}  // NOLINT(*-explicit-*): most are one function
  Issue prepare;                        // what it computes before it meets other ranks; may be none
  Issue run;
};
using OpKernels = std::vector<OpKernel>;

/// Whether a run records when each operation ran.
enum class Spans : std::uint8_t { none, recorded };

/// Runs the programs of one rank on the streams of its device. An operation begins when the one
/// before it on its stream is over and all those that it waits for are. Knows nothing of what
/// operations do.
class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;
  ProgramRunner() = default;
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

  /// Runs a program once, to its last operation. An exception of a kernel ends the run for all
  /// ranks.
  /// \param kernels  one for each operation, in program order; the same object each time
  /// \throws Aborted when the run has failed, here or elsewhere
  virtual void run(std::size_t program, const OpKernels& kernels, Spans spans) = 0;
  /// When each operation of the program that ran last did; none where that was not recorded.
  virtual std::span<const OpSpan> spans() const = 0;
  /// Whether a recorded run takes longer than others. On a GPU it does: it has events around every
  /// operation, and is no graph.
  virtual bool recording_takes_time() const { return false; }
  /// Tells people how the device runs unrecorded steady steps; empty where that needs no saying.
  virtual std::string how_it_runs(std::size_t /*program*/) const { return {}; }
};

/// Nanoseconds of the steady clock.
std::int64_t now_ns();

}  // namespace shardwise::exec
