#pragma once

#include <filesystem>
#include <string>

#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Reads a cluster file, schema "shardwise.cluster/1", and the file of its GPU: docs/formats.md.
Result<ClusterSpec> read_cluster(const std::filesystem::path& path);

/// Finds what `--cluster` names: a name of the catalogue (configs/clusters) or the path of a file.
Result<ClusterSpec> find_cluster(const std::string& name_or_path);

/// Reads a cluster from a JSON value. "gpu" may be the GPU's name or its whole file.
/// \param file  the name put into diagnostics; its stem is the cluster's name unless "name" is
/// given \param path  JSON pointer of `root` in the file
Result<ClusterSpec> cluster_from_json(const JsonValue& root, const std::string& file,
                                      const std::string& path = "");

/// The cluster with `gpus` GPUs, as `--gpus` asks for: a problem when it cannot have so many. Of
/// domains that span nodes the job takes as many nodes each, and the first tier is then as large.
Result<ClusterSpec> with_gpus(ClusterSpec cluster, std::int64_t gpus);

}  // namespace shardwise
