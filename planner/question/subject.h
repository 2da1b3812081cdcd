#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Model, cluster and software as a user gave them: texts of flags or of a form.
struct AskedJob {
  std::string model;    // of the catalogue, or a file
  std::string cluster;  // the same
  std::string gpus;     // empty: one node, or what the layout's degrees multiply to
  std::string engine;   // empty: the usual one
  std::map<std::string, std::string> texts;  // the rest, by field of JobSpec; "" = not given
};

/// The flags that were given: "--engine", "--sequence-length" …
std::vector<std::string> given_flags(const AskedJob& asked);

/// The four things that do not depend on the layout.
struct Subject {
  ModelSpec model;
  ClusterSpec cluster;  // gpus as asked for
  JobSpec job;
  EngineProfile engine;
  bool gpus_given = false;
  bool recompute_core_attention = false;  // recompute_modules core_attn
  std::string stack;                      // "tuned", "ordinary" or, where nobody asks, empty
  std::vector<Assumption> assumptions;    // what was taken for want of a flag or a key
};

/// Loads and checks everything that is named. All problems are reported, not the first; they name
/// flags of the command line (planner/question/flags.h).
Result<Subject> read_subject(const AskedJob& asked);

/// Adds what the engines' users run and nobody asked about (usual_kernels_assumptions), in place of
/// what was said of other engines.
void note_usual_kernels(const AskedJob& asked, const ModelSpec& model, const JobSpec& job,
                        std::span<const EngineProfile* const> engines,
                        std::vector<Assumption>& assumptions);

/// Adds what a first screen says of times whose curves were not measured: curves_assumption().
void note_curves(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                 std::vector<Assumption>& assumptions);

}  // namespace shardwise
