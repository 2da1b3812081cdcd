#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/score/rows/notes.h"
#include "planner/score/rows/row.h"
#include "planner/spec/machine/cluster_spec.h"

namespace shardwise {

/// A GPU of the catalogue.
struct KnownGpu {
  std::string name;  // "a100-80gb-sxm"
  double memory_gib = 0;
};

/// The one of `known` that a source's wording of a GPU means: the same family, the form factor and
/// the memory where the wording has them; else the SXM part with the shortest name, and of these
/// the one with most memory. Empty when there is none.
std::string gpu_named(std::string_view wording, std::optional<double> memory_gb,
                      const std::vector<KnownGpu>& known);

/// Machines of rows: clusters of the catalogue, fitted to what each row states.
class Machines {
 public:
  /// The cluster a row ran on: the catalogue's with that GPU, and of these the one with the same
  /// kind of links between nodes and as many GPUs a node, NVIDIA's own where that leaves a choice.
  /// Memory and links between nodes as the row has them. Refuses GPUs that the catalogue does not
  /// have. nullptr after a refusal. \param gpus  ranks of the row's layout
  std::shared_ptr<const ClusterSpec> machine_of(const Row& row, std::int64_t gpus, Notes& notes);

 private:
  struct Fitted {
    std::shared_ptr<const ClusterSpec> cluster;
    Notes notes;
  };
  void load();
  Fitted fit(const Row& row, std::int64_t gpus) const;

  bool loaded_ = false;
  std::string unreadable_;  // the last entry that is no cluster, and why
  std::vector<ClusterSpec> catalogue_;
  std::vector<KnownGpu> gpus_;  // of the catalogue's clusters
  std::map<std::string, Fitted> fitted_;
};

}  // namespace shardwise
