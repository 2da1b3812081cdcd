#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"

namespace shardwise::cli {

/// Another program of ours that does the work of a verb, so that neither loads the libraries of the
/// other's room. It lies beside this program, else in a folder of PATH that is not relative to the
/// current one. One that is not to be trusted is not passed over for another (TrustedFile).
struct OtherProgram {
  const char* name;
  const char* verb;      // its first argument, nullptr for none
  const char* built_by;  // the switch that builds it
};
inline constexpr OtherProgram kTrain = {"shardwise-run", "train", "SHARDWISE_EXECUTOR"};
inline constexpr OtherProgram kView = {"shardwise-view", nullptr, "SHARDWISE_GUI"};

/// Whether it is installed; says how to build it on standard error where it is not.
bool installed(const OtherProgram& other);

/// Becomes it. \throws IoError  where it is not trusted or does not start \returns where it is not
/// installed, which has been said
ExitCode hand_over(const OtherProgram& other, const std::vector<std::string>& arguments);

/// End of a run of a program, and what it wrote to standard error.
struct EndedProgram {
  int exit_code = -1;  // -1: a signal ended it
  std::string said;
};
/// Runs it to its end; what it prints is left out. An interrupt from the terminal ends it alone:
/// the caller sees that a signal did. \pre installed(other)
EndedProgram run_to_end(const OtherProgram& other, const std::vector<std::string>& arguments);

}  // namespace shardwise::cli
