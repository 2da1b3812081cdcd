#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iosfwd>
#include <memory>
#include <string>

#include "executor/engine/trainer.h"

namespace shardwise::exec {

/// Tells people and programs how a run goes: a line a step on standard output, and a line of JSON a
/// step in the metrics file, whose first line names its schema.
class Progress {
 public:
  /// \param metrics     empty: no file. \throws IoError when it cannot be written
  /// \param first_step  of this run: after a checkpoint the file goes on, without what it has of
  /// this
  ///                    step and those after it
  /// \param note  why times mean nothing, in the file's first line; empty where they do
  Progress(std::int64_t steps, std::int64_t tokens_a_step, const std::string& metrics,
           std::int64_t first_step, const std::string& note = {});
  /// \param held_s  seconds for which the run stood still after the step, for a checkpoint to copy
  /// what
  ///                it keeps and for the one before to be complete; 0 without one
  void step(const StepResult& result, double held_s);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::int64_t steps_;
  std::int64_t tokens_;
  std::string name_;
  std::unique_ptr<std::FILE, Close> metrics_;
  std::int64_t ran_ = 0;  // steps so far, in this run
  double spent_ = 0;      // their seconds
};

/// Bytes that the lines of a metrics file take which stand before the line of
/// `first_step`; 0 for a text that is no such file. A line without an end is none.
std::int64_t kept_metrics(std::istream& text, std::int64_t first_step);

}  // namespace shardwise::exec
