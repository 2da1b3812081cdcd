#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "answers/plan_answer.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/units.h"

namespace shardwise::sim {

/// One change of a question or of its best layout, and what the best layout with it is.
struct HelpfulChange {
  std::string text;        // "infiniband x 2: 800 GB/s", "128 GPUs", "engine fsdp2"
  std::string flags;       // what asks it: "--gpus 128", "--recompute=full"; empty where none does
  Seconds step;            // of the changed question's best layout, for the same batch
  bool estimated = false;  // `step` is scaled by the step-time model, the question's is simulated
  Bytes memory;            // of its fullest GPU
  double faster = 0;       // a share of the step that it saves; below zero it takes longer
  double dollars_per_1e9_tokens = 0;  // 0 = no price known
  Plan plan;                          // the changed question with that layout
};

/// A change that saves less than this share of a step is named, and nothing else is said of it.
inline constexpr double kLeastHelp = 0.005;

/// How changes are tried.
struct Trying {
  SayPlanning say;                            // told before each question; may be empty
  std::vector<const EngineProfile*> engines;  // each a question of its own; those that the answer
                                              // has are not asked again
  std::stop_token stop;  // looked at before each question: what is known by then is all
};

/// In words those that do not help: "less than 0.5 % faster or slower: A; slower: B (+1.7 %)".
/// Empty where all do.
std::string little_help_words(const std::vector<HelpfulChange>& changes);

/// What would help most: links twice as fast, 16 GiB more on each GPU, twice the GPUs, the clusters
/// of the catalogue that are fastest and cheapest a token with as many GPUs, other engines, and
/// single changes of the best layout that the search had not in its space. Each but
/// the last is a question of its own with the engine that leads; all else stays. The most helpful
/// first. \pre `answer` has a best row
std::vector<HelpfulChange> helpful_changes(const PlanQuestion& question, const PlanAnswer& answer,
                                           const Trying& trying = {});

}  // namespace shardwise::sim
