#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace shardwise::cli {

struct KnownModel {
  std::string name;
  bool routed = false;  // has experts of which a token passes through some
};
struct KnownCluster {
  std::string name;
  std::int64_t gpus_per_node = 1;
};
struct KnownEngine {
  std::string name;
  std::vector<std::int64_t> zero_stages;
  std::vector<std::string> parallel;  // "tp", "cp", "pp", "ep"
  std::vector<std::string> schedules;
};

/// Names of the catalogue, in its own order.
struct Catalogue {
  std::vector<KnownModel> models;
  std::vector<KnownCluster> clusters;
  std::vector<KnownEngine> engines;
};

/// Asks the built program (`shardwise list`) for it.
Catalogue known_catalogue();

/// One question about one layout: flags without their dashes, and their values ("" = a bare
/// switch).
struct Question {
  std::map<std::string, std::string> subject;  // model, cluster, gpus, engine
  std::map<std::string, std::string> job;
  std::map<std::string, std::string> layout;

  /// `verb`, the flags in one order, then `more`.
  std::vector<std::string> command(const std::string& verb,
                                   const std::vector<std::string>& more = {}) const;
};

/// A question drawn from `seed`; the same seed and catalogue draw the same one. The degrees
/// multiply up to the GPUs. One question in eight ignores what its engine can do: such a question
/// must be refused well.
Question draw_question(const Catalogue& catalogue, std::uint64_t seed);

}  // namespace shardwise::cli
