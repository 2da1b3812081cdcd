#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/program/ledger.h"
#include "planner/spec/text/units.h"

namespace shardwise {

// What the simulator's clock, or a recorder's, adds to a report: who did what when. All of one rank
// of each pipeline stage.

/// One queue of a rank over a step.
struct StreamTime {
  std::string stream;  // name_of(Stream)
  std::int64_t operations = 0;
  Seconds busy;     // an operation runs; two ends of a message do not count their waiting
  Seconds exposed;  // of this, with nothing on the compute stream
};

/// Bytes one way over one of a rank's links in a step: its own, or one that it shares.
struct LinkTime {
  std::string tier;        // "infiniband"; "spine up-links" for those of its switches
  std::int64_t ranks = 1;  // that share the link
  Bytes sent;              // by this rank
  Bytes carried;           // by the link, of all its ranks
  Seconds busy;            // `carried` at the link's full rate
  double utilisation = 0;  // busy over the step
};

/// A moment at which memory changed its course.
struct MemorySample {
  Seconds at;
  Bytes allocated;
  Bytes reserved;
};

/// Buffers of one kind that exist when memory is at its peak.
struct LiveBuffers {
  MemoryCategory category = MemoryCategory::working;
  std::int32_t layer = -1;  // -1: of none
  std::int64_t count = 0;
  Bytes bytes;  // together
};

struct StageTimeline {
  std::int32_t stage = 0;
  Seconds computing;  // the compute stream runs something
  Seconds idle;       // it does not, from the step's begin to its end on all stages
  std::vector<StreamTime> streams;
  std::vector<LinkTime> links;
  std::vector<MemorySample> memory;  // thinned out where there are many
  Seconds peak_at;
  std::vector<LiveBuffers> at_peak;  // largest first
};

/// Operations of one name, whatever their micro-batch.
struct OperationTime {
  std::string name;  // "fwd.layer12", "gather.layer0.bwd"
  std::int32_t stage = 0;
  std::string stream;
  std::int64_t count = 0;
  Seconds time;     // of all of them, from start to end
  Seconds exposed;  // of this, with nothing on the compute stream
};

/// Step times of many trials with noise, and what failures leave of a long run.
struct NoiseSpread {
  std::int64_t trials = 0;
  std::int64_t seed = 0;
  std::int64_t stopped = 0;       // trials whose step cannot run: nodes are cut off
  std::int64_t cut_off_gpus = 0;  // the most of a trial
  Seconds p50;                    // of the trials that run, zero where none does
  Seconds p95;
  double goodput = 0;  // time of steps that count over wall time, of all GPUs; 0 = failures not
                       // asked for
};

struct StepTimeline {
  Seconds critical_path;  // of the chain that ends the step, planner/recorded/critical_path.h
  double overlap = 0;     // share of communication time beside which compute ran
  std::vector<StageTimeline> stages;
  std::vector<OperationTime> operations;
  NoiseSpread noise;  // of no trial when none was asked for
};

}  // namespace shardwise
