#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "executor/engine/trainer.h"

namespace shardwise::exec {

/// Tells people and programs how a run goes: a line a step on standard output, and a line of JSON a
/// step in the metrics file, whose first line names its schema.
class Progress {
 public:
  /// \param metrics  empty: no file. \throws IoError when it cannot be written
  Progress(std::int64_t steps, std::int64_t tokens_a_step, const std::string& metrics);
  void step(const StepResult& result);

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

}  // namespace shardwise::exec
