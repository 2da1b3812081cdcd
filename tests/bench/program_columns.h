#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/workload/workload.h"

namespace shardwise::sim {

/// A step program as straight-line code over columns of prices: one column a layout, all layouts
/// with the same program. Gives the length of the step that run_alone() gives, where the host is
/// never late.
///
/// Operations that only follow one another are one instruction, so a pass of a chunk is one unless
/// something moves beside its layers. An end of a message or of a collective between stages is one
/// instruction too.
class ProgramColumns {
 public:
  /// \pre one actor for each stage, no noise, no host (LaunchRules::issue is 0)
  explicit ProgramColumns(const Workload& work);

  /// Prices of all stages, one stage after the other.
  std::size_t prices() const { return prices_; }
  /// Instructions that stand for operations.
  std::size_t operations() const { return operations_; }
  /// All instructions: those with more than two predecessors are cut.
  std::size_t instructions() const { return instructions_.size(); }
  /// Sums of prices that instructions take.
  std::size_t durations() const { return durations_.size(); }
  /// Ends that are known and still needed, at most.
  std::size_t places() const { return places_; }

  /// Room of a run, kept between runs.
  struct Room {
    std::vector<double> durations;
    std::vector<double> ends;
  };
  /// Length of the step of each layout, `lanes` of them: 1, 4 or 8.
  /// \param prices  [price][lane], seconds  \param lengths  [lane]
  void run(const double* prices, int lanes, Room& room, double* lengths) const;

  /// Ends at the later of two ends, and a duration after it.
  struct Instruction {
    std::uint32_t after = 0;  // places of ends
    std::uint32_t other = 0;
    std::uint32_t duration = 0;
    std::uint32_t to = 0;
  };
  /// The longer of two sums of prices; `second` is empty where only one rank takes part.
  struct Duration {
    IndexRange first;  // of terms_
    IndexRange second;
  };

 private:
  friend class ColumnsBuilder;

  std::vector<Instruction> instructions_;  // each after what it waits for
  std::vector<Duration> durations_;
  std::vector<std::uint32_t> terms_;  // prices
  std::size_t prices_ = 0;
  std::size_t operations_ = 0;
  std::size_t places_ = 1;    // of ends; place 0 is the step's begin
  std::uint32_t result_ = 0;  // place of the last end
};

/// The prices of a workload's program, as ProgramColumns::run takes one lane of them.
std::vector<double> price_column(const Workload& work);

}  // namespace shardwise::sim
