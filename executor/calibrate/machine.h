#pragma once

#include <string>

#include "executor/comm/world.h"
#include "planner/spec/text/units.h"

namespace shardwise::exec {

/// Machine of a measurement.
struct Machine {
  std::string host;
  std::string processor;  // "AMD EPYC-Milan Processor"
  int cores = 1;          // that this process may run on
  Bytes memory;           // of the machine, or what this process may have of it
  std::string date;       // "2026-11-21", UTC
  double load = 0;        // processes that ran or waited to, over the last minute
  std::string products;   // what multiplies matrices: "OpenBLAS 0.3.21 with SkylakeX kernels"
};

/// This machine, now, but `products`. What the system does not tell is empty or 0.
Machine this_machine();

/// Processors that any rank of a job may run on: launchers give each process its own.
/// \throws IoError when ranks are on several machines
int cores_of_all(World& world);

/// Resident memory that is this process's own: without pages of files, as its code and its data
/// set are, and without memory that it shares with other processes.
Bytes resident_memory();

}  // namespace shardwise::exec
