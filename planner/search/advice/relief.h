#pragma once

#include <functional>
#include <optional>
#include <string>

#include "planner/search/search.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// One change of what a search was asked, after which a layout fits.
struct Relief {
  std::string text;  // "--open offload_optimizer", "--gpus 128", "without --lock tp=1"
  Candidate best;
  std::int64_t gpus = 0;
};

/// For a search without a layout that fits: of the single changes (a field opened, a lock or the
/// memory limit dropped) that give one, the one of least GPU time a step.
/// \param say  told before each trial
std::optional<Relief> cheapest_relief(const SearchRequest& request,
                                      const std::function<void(const std::string&)>& say);

/// For such a search: the fewest GPUs of the cluster on which a layout of the usual space fits, of
/// 2, 4, 8 … up to a node and then of whole nodes (of every few, where there are many to try);
/// nothing where 256 times the GPUs are not enough or the cluster cannot have them.
/// \param say  told before each trial
std::optional<Relief> fewest_gpus(const SearchRequest& request,
                                  const std::function<void(const std::string&)>& say);

/// "--open offload_optimizer: 61.2 GiB, 1.32 s a step".
std::string to_string(const Relief& relief);

/// For a search without any legal layout: what is wrong with the plainest one that has the locked
/// values.
Diagnostics why_none_is_legal(const SearchRequest& request);

}  // namespace shardwise
