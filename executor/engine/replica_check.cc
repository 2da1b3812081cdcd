#include "executor/engine/replica_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "executor/engine/rank_place.h"

namespace shardwise::exec {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 22;
static_assert(kBlockBytes % WeightHash::kGranule == 0);

/// For each word another result from the same hash, and for each hash from the same word: both
/// steps can be undone.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  constexpr std::uint64_t kOdd = 0x9E37'79B9'7F4A'7C15;
  hash = (hash ^ word) * kOdd;
  return hash ^ (hash >> 32);
}

/// Whether the next step gathers what this step's optimizer updated.
bool gathers_later(const StageProgram& steady) {
  for (const ProgramOp& op : steady.operations) {
    if (op.role == OpRole::optimizer) return false;
    if (op.role == OpRole::gather_updated || op.role == OpRole::gather_outer) return true;
  }
  return false;
}

/// "rank 2", "ranks 0, 1 and 3", "ranks 0, 1, 2 and 13 more".
std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t kShown = 8;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  const bool all = ranks.size() <= kShown;
  const std::span<const std::int64_t> some(ranks.data(), all ? ranks.size() - 1 : kShown);
  return fmt::format(
      "ranks {} and {}", fmt::join(some, ", "),
      all ? std::to_string(ranks.back()) : fmt::format("{} more", ranks.size() - kShown));
}

/// Hashes of one part on all replicas: who has another one than most. All of them where no hash is
/// on more than half; none where all are the same.
std::vector<std::int64_t> odd_ranks(const std::vector<std::int64_t>& ranks,
                                    const std::vector<std::uint64_t>& hashes) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const std::uint64_t hash : hashes) ++counts[hash];
  std::vector<std::int64_t> odd;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (2 * counts[hashes[r]] <= ranks.size()) odd.push_back(ranks[r]);
  }
  const bool majority = odd.size() < ranks.size();
  return majority || counts.size() > 1 ? odd : std::vector<std::int64_t>();
}

}  // namespace

void WeightHash::add(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, kGranule / sizeof(std::uint64_t)> words{};
  for (; bytes.size() >= kGranule; bytes = bytes.subspan(kGranule)) {
    std::memcpy(words.data(), bytes.data(), kGranule);
    for (std::size_t i = 0; i < words.size(); ++i) lanes_[i] = mixed(lanes_[i], words[i]);
  }
  if (bytes.empty()) return;
  words = {};
  std::memcpy(words.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < words.size(); ++i) lanes_[i] = mixed(lanes_[i], words[i]);
}

std::uint64_t WeightHash::value() const {
  std::uint64_t hash = 0;
  for (const std::uint64_t lane : lanes_) hash = mixed(hash, lane);
  return hash;
}

ReplicaCheck::ReplicaCheck(Trainer& trainer, const Layout& layout, World& world, Device& device,
                           const Arena& arena, AbortSignal& abort)
    : trainer_(trainer),
      device_(device),
      arena_(arena),
      abort_(abort),
      rank_(world.rank()),
      gathers_later_(gathers_later(trainer.program(1))) {
  std::vector<DataParallelPlace> places;
  for (int rank = 0; rank < world.size(); ++rank) {
    places.push_back(place_of(layout, rank));
  }
  const Placement kept = trainer.state().placement().parameters;
  std::map<std::pair<std::int32_t, int>, std::vector<std::int64_t>> sets;  // by stage and shard
  for (int rank = 0; rank < world.size(); ++rank) {
    const DataParallelPlace& place = places[static_cast<std::size_t>(rank)];
    const int shard = kept == Placement::replicate ? 0 : place.shard_rank;
    sets[{stage_of(layout, rank), shard}].push_back(rank);
  }
  for (auto& set : sets) {
    if (std::ranges::find(set.second, std::int64_t{rank_}) != set.second.end()) {
      own_set_ = set.second;
    }
    sets_.push_back(std::move(set.second));
  }
  if (replicas() == 1) return;
  find_parts(places);
  stream_ = device.stream(StreamPriority::normal);
}

ReplicaCheck::~ReplicaCheck() = default;

void ReplicaCheck::find_parts(const std::vector<DataParallelPlace>& places) {
  const RankState& state = trainer_.state();
  const Placement optimizer = state.placement().optimizer;
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const StateUnit& unit = state.units().units[u];
    const ShardRange kept = state.keeps(u);
    const ShardRange updated = held_of(unit, optimizer, state.place());
    std::set<std::int64_t> cuts;
    if (gathers_later_) {
      for (const std::int64_t rank : own_set_) {
        const ShardRange theirs = held_of(unit, optimizer, places[static_cast<std::size_t>(rank)]);
        cuts.insert({theirs.begin, theirs.begin + theirs.count});
      }
    }
    for (const UnitTensor& tensor : unit.tensors) {
      std::int64_t begin = std::max(tensor.begin, kept.begin);
      const std::int64_t end = std::min(tensor.begin + tensor.elements, kept.begin + kept.count);
      while (begin < end) {
        const auto cut = cuts.upper_bound(begin);
        const std::int64_t next = cut == cuts.end() ? end : std::min(end, *cut);
        const bool own = begin >= updated.begin && begin < updated.begin + updated.count;
        parts_.push_back({u, &tensor, begin, next - begin, gathers_later_ && own});
        begin = next;
      }
    }
  }
}

void ReplicaCheck::hash_parts(bool early) {
  block_.resize(kBlockBytes);
  for (Part& part : parts_) {
    if (part.early != early) continue;
    const RankState::View view = trainer_.state().view(arena_, 0, part.unit);
    const std::int64_t first = part.begin - trainer_.state().keeps(part.unit).begin;
    const TensorView weights =
        view.weights.part(static_cast<std::size_t>(first), static_cast<std::size_t>(part.count));
    WeightHash hash;
    for (std::size_t at = 0; at < weights.bytes(); at += kBlockBytes) {
      const auto bytes = std::span(block_).first(std::min(kBlockBytes, weights.bytes() - at));
      device_.download(bytes, weights.data + at, *stream_);
      hash.add(bytes);
    }
    part.hash = hash.value();
  }
}

void ReplicaCheck::after_step(std::int64_t done, bool due) {
  if (replicas() == 1) return;
  if (begun_ >= 0) {
    hash_parts(false);
    compare();
    begun_ = -1;
  }
  if (!due) return;
  begun_ = done;
  if (gathers_later_) return hash_parts(true);
  hash_parts(false);
  compare();
  begun_ = -1;
}

void ReplicaCheck::compare() {
  std::uint64_t own = 0;
  std::string hashes;
  for (const Part& part : parts_) {
    own = mixed(own, part.hash);
    hashes.append(reinterpret_cast<const char*>(&part.hash), sizeof(part.hash));
  }
  ControlGroup& everyone = trainer_.everyone();
  std::vector<std::uint64_t> all(static_cast<std::size_t>(everyone.size()));
  everyone.all_gather_bytes(std::as_bytes(std::span(&own, 1)),
                            std::as_writable_bytes(std::span(all)));
  const auto alike = [&](const std::vector<std::int64_t>& set) {
    return std::ranges::all_of(set, [&](std::int64_t rank) {
      return all[static_cast<std::size_t>(rank)] == all[static_cast<std::size_t>(set.front())];
    });
  };
  if (std::ranges::all_of(sets_, alike)) return;
  const std::vector<std::string> texts = all_gather_texts(everyone, hashes);
  if (!alike(own_set_)) fail(texts);
}

/// Ends the run. Every replica says the same, whichever is heard.
void ReplicaCheck::fail(const std::vector<std::string>& hashes) {
  std::vector<std::int64_t> odd;
  const UnitTensor* first = nullptr;
  std::set<std::string> others;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    std::vector<std::uint64_t> theirs(own_set_.size());
    for (std::size_t r = 0; r < own_set_.size(); ++r) {
      const std::string& text = hashes[static_cast<std::size_t>(own_set_[r])];
      std::memcpy(&theirs[r], text.data() + p * sizeof(std::uint64_t), sizeof(std::uint64_t));
    }
    const std::vector<std::int64_t> found = odd_ranks(own_set_, theirs);
    if (found.empty()) continue;
    if (first == nullptr) {
      first = parts_[p].tensor;
      odd = found;
    } else if (parts_[p].tensor != first) {
      others.insert(parts_[p].tensor->name);
    }
  }
  const std::string more = others.empty() ? ""
                                          : fmt::format(" (and {} tensor{} more)", others.size(),
                                                        others.size() == 1 ? "" : "s");
  std::vector<std::int64_t> rest;
  std::ranges::set_difference(own_set_, odd, std::back_inserter(rest));
  const bool one = odd.size() == 1;
  const std::string whom =
      rest.empty() ? "one another"
                   : fmt::format("{} of {}", rest.size() == 1 ? "that" : "those", ranks_text(rest));
  abort_.raise(fmt::format(
      "{}: {} of {} {} from {} after step {}{}{}: memory, a device or a link altered {}; resume "
      "from "
      "the last checkpoint",
      ranks_text(odd), one ? "the copy" : "the copies", first->name, one ? "differs" : "differ",
      whom, begun_, more, rest.empty() ? ", and none is in the majority" : "",
      rest.empty() ? "one of them"
      : one        ? "it"
                   : "them"));
  abort_.check();
}

}  // namespace shardwise::exec
