#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "planner/search/search.h"
#include "planner/spec/report/report.h"

namespace shardwise {

/// A job on all GPUs of a cluster, in the usual space of one engine.
struct BestQuestion {
  const ModelSpec* model = nullptr;
  const ClusterSpec* cluster = nullptr;
  const JobSpec* job = nullptr;  // global_batch_size is set
  const EngineProfile* engine = nullptr;
  // As in SearchRequest.
  bool executed = false;
  std::shared_ptr<SearchMemory> memory;
  std::stop_token stop;
};

/// The layout with the shortest step, or what stands in its way.
struct BestLayout {
  std::optional<StepReport> report;   // of the best that fits; where none does, of those at risk
  std::optional<Candidate> smallest;  // without a report: of all legal layouts the one that needs
                                      // least memory
  Bytes usable;                       // memory that a layout may use
  std::string refused;                // why no layout is legal; empty where one is
  bool stopped = false;               // nothing else is set

  /// Without a report: memory that the smallest layout lacks.
  Bytes lacks() const { return smallest ? smallest->cost.needed - usable : Bytes(0); }
};

/// Found by search(), which times only layouts that may become the best.
BestLayout best_layout(const BestQuestion& question);

}  // namespace shardwise
