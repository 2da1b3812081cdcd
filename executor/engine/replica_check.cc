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

std::uint64_t name_of(const std::vector<std::int64_t>& ranks) {
  std::uint64_t name = ranks.size();
  for (const std::int64_t rank : ranks) name = mixed(name, static_cast<std::uint64_t>(rank));
  return name;
}

/// "model.norm.weight", "exp_avg of model.norm.weight".
std::string text_of(Kept kept, const UnitTensor& tensor) {
  switch (kept) {
    case Kept::weights:
    case Kept::used_weights:
      return tensor.name;
    case Kept::main_weights:
      return "the main weights of " + tensor.name;
    case Kept::remainders:
      return "the remainders of the main weights of " + tensor.name;
    case Kept::exp_avg:
      return "exp_avg of " + tensor.name;
    case Kept::exp_avg_sq:
      return "exp_avg_sq of " + tensor.name;
  }
  return tensor.name;
}

bool has_copy(const StateUnits& units) {
  return std::ranges::any_of(units.units, [](const StateUnit& unit) {
    return std::ranges::any_of(unit.tensors, &UnitTensor::copy);
  });
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
      rank_(static_cast<std::size_t>(world.rank())),
      gathers_later_(gathers_later(trainer.program(1))) {
  for (int rank = 0; rank < world.size(); ++rank) {
    places_.push_back({stage_of(layout, rank), place_of(layout, rank)});
  }
  stream_ = device.stream(StreamPriority::normal);
  within_steps_ = trainer_.watch({[this] { hash_used(); }, [this] { hash_made(); },
                                  [this](std::int64_t step) {
                                    hash_parts(false);
                                    compare(step, true);
                                  }});
  find_parts(layout);
}

ReplicaCheck::~ReplicaCheck() { trainer_.watch({}); }

void ReplicaCheck::find_parts(const Layout& layout) {
  const RankState& state = trainer_.state();
  const std::int32_t stage = places_[rank_].stage;
  const auto last = static_cast<std::int32_t>(layout.pp - 1);
  const UnitTensor* table = nullptr;
  if (last > 0 && (stage == 0 || stage == last)) {
    other_ = state_units(trainer_.context(), last - stage);
    if (has_copy(stage == last ? state.units() : other_)) {
      table = &state.units().tensor(state.units().table());
    }
  }
  std::vector<Kept> kinds = {Kept::weights};
  // Before a step that gathers what the last one made, only the ranks that updated it have it.
  if (within_steps_ || !gathers_later_) kinds.push_back(Kept::used_weights);
  if (state.types().main_weights) {
    kinds.push_back(state.types().remainders ? Kept::remainders : Kept::main_weights);
  }
  kinds.insert(kinds.end(), {Kept::exp_avg, Kept::exp_avg_sq});
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    for (const UnitTensor& tensor : state.units().units[u].tensors) {
      for (const Kept kept : kinds) add_parts(kept, u, tensor, &tensor == table);
    }
  }
}

/// By rank: which elements of a tensor it keeps by this placement, none where count is not above 0.
std::vector<ShardRange> ReplicaCheck::ranges(Placement placement, std::size_t unit,
                                             const UnitTensor& tensor, bool on_two_stages) const {
  const StateUnit& own = trainer_.state().units().units[unit];
  std::vector<ShardRange> found;
  for (const Place& each : places_) {
    const bool here = each.stage == places_[rank_].stage;
    const bool there =
        on_two_stages && each.stage == trainer_.context().layout().pp - 1 - places_[rank_].stage;
    const bool other_part =
        tensor.cut.cut() &&
        tensor.cut.part_of(each.place.tp_rank) != tensor.cut.part_of(places_[rank_].place.tp_rank);
    if ((!here && !there) || other_part) {
      found.emplace_back();
      continue;
    }
    const StateUnit& its_unit = here ? own : other_.units[other_.table().unit];
    const std::int64_t at = here ? tensor.begin : other_.tensor(other_.table()).begin;
    const ShardRange held = held_of(its_unit, placement, each.place);
    const std::int64_t begin = std::max<std::int64_t>(0, held.begin - at);
    const std::int64_t end = std::min(tensor.elements, held.begin + held.count - at);
    found.push_back({begin, std::max<std::int64_t>(0, end - begin)});
  }
  return found;
}

/// Where other ranks keep what this one does of a tensor.
void ReplicaCheck::add_parts(Kept kept, std::size_t unit, const UnitTensor& tensor,
                             bool on_two_stages) {
  const StatePlacement& placement = trainer_.state().placement();
  const auto ends = [](const ShardRange& range) { return range.begin + range.count; };
  const auto of = [&](Placement each) { return ranges(each, unit, tensor, on_two_stages); };
  const bool weights = kept == Kept::weights || kept == Kept::used_weights;
  const std::vector<ShardRange> keepers = of(weights ? placement.parameters : placement.optimizer);
  std::vector<ShardRange> updaters;
  if (kept == Kept::used_weights || (kept == Kept::weights && gathers_later_)) {
    updaters = of(placement.optimizer);
  }
  std::set<std::int64_t> cuts;
  const auto cut = [&](const ShardRange& range) {
    if (range.count > 0) cuts.insert({range.begin, ends(range)});
  };
  std::ranges::for_each(keepers, cut);
  std::ranges::for_each(updaters, cut);
  const ShardRange& own = keepers[rank_];
  for (std::int64_t begin = own.begin; begin < ends(own);) {
    const std::int64_t end = std::min(ends(own), *cuts.upper_bound(begin));
    const auto has = [&](const ShardRange& range) {
      return range.begin <= begin && end <= ends(range);
    };
    std::vector<std::int64_t> ranks;
    for (std::size_t r = 0; r < keepers.size(); ++r) {
      if (has(keepers[r])) ranks.push_back(static_cast<std::int64_t>(r));
    }
    if (ranks.size() > 1) {
      Copies& copies = copies_[name_of(ranks)];
      copies.parts.push_back(parts_.size());
      copies.ranks = std::move(ranks);
      const bool updates = !updaters.empty() && has(updaters[rank_]);
      const bool used = kept == Kept::used_weights;
      const auto gets = [&](std::int64_t rank) {
        return !has(updaters[static_cast<std::size_t>(rank)]);
      };
      const bool spreads = used && updates && std::ranges::any_of(copies.ranks, gets);
      parts_.push_back({kept, unit, &tensor, begin, end - begin, updates && !used, spreads});
    }
    begin = end;
  }
}

std::pair<const std::byte*, std::size_t> ReplicaCheck::bytes_of(const Part& part) const {
  const RankState& state = trainer_.state();
  const RankState::View view = state.view(arena_, 0, part.unit);
  const std::int64_t in_unit = part.tensor->begin + part.begin;
  const auto count = static_cast<std::size_t>(part.count);
  const auto of = [&](const TensorView& all, std::int64_t first) {
    const TensorView some = all.part(static_cast<std::size_t>(in_unit - first), count);
    return std::pair<const std::byte*, std::size_t>(some.data, some.bytes());
  };
  switch (part.kept) {
    case Kept::weights:
    case Kept::used_weights:
      return of(view.weights, state.keeps(part.unit).begin);
    case Kept::main_weights:
      return of(view.main, view.held.begin);
    case Kept::exp_avg:
      return of(view.exp_avg, view.held.begin);
    case Kept::exp_avg_sq:
      return of(view.exp_avg_sq, view.held.begin);
    case Kept::remainders:
      break;
  }
  const auto remainders =
      view.remainders.subspan(static_cast<std::size_t>(in_unit - view.held.begin), count);
  return {reinterpret_cast<const std::byte*>(remainders.data()), remainders.size_bytes()};
}

std::uint64_t ReplicaCheck::hash_of(const Part& part) {
  block_.resize(kBlockBytes);
  const auto [begin, size] = bytes_of(part);
  WeightHash hash;
  for (std::size_t at = 0; at < size; at += kBlockBytes) {
    const auto bytes = std::span(block_).first(std::min(kBlockBytes, size - at));
    device_.download(bytes, begin + at, *stream_);
    hash.add(bytes);
  }
  return hash.value();
}

/// Adds to what the steps since the last comparison used. Where that is not what this rank made,
/// others may have it too: then this rank's hash is like none.
void ReplicaCheck::hash_used() {
  for (Part& part : parts_) {
    if (part.kept != Kept::used_weights) continue;
    const std::uint64_t used = hash_of(part);
    part.hash = mixed(part.hash, used);
    if (part.made && *part.made != used) part.hash = mixed(part.hash, *part.made);
  }
}

void ReplicaCheck::hash_made() {
  for (Part& part : parts_) {
    if (part.spreads) part.made = hash_of(part);
  }
}

void ReplicaCheck::hash_parts(bool early) {
  for (Part& part : parts_) {
    if (part.kept != Kept::used_weights && part.early == early) part.hash = hash_of(part);
  }
}

void ReplicaCheck::before_step() {
  hash_parts(true);
  if (!within_steps_) hash_used();
}

void ReplicaCheck::after_step(std::int64_t done) {
  hash_parts(false);
  compare(done, false);
  for (Part& part : parts_) {
    if (part.kept == Kept::used_weights) part.hash = 0;
  }
}

/// \param failed  the step was found wrong: whether before_step() was called is not known, so that
///                weights count as it used them
void ReplicaCheck::compare(std::int64_t done, bool failed) {
  // Of each set of ranks its name and one hash of all they keep.
  std::string own;
  const auto append = [&own](std::uint64_t number) {
    own.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  for (const auto& [name, copies] : copies_) {
    std::uint64_t hash = 0;
    for (const std::size_t part : copies.parts) {
      if (!failed || parts_[part].kept != Kept::weights) hash = mixed(hash, parts_[part].hash);
    }
    append(name);
    append(hash);
  }
  std::map<std::uint64_t, std::uint64_t> hashes;
  for (const std::string& text : all_gather_texts(trainer_.everyone(), own)) {
    std::array<std::uint64_t, 2> each{};
    for (std::size_t at = 0; at + sizeof(each) <= text.size(); at += sizeof(each)) {
      std::memcpy(each.data(), text.data() + at, sizeof(each));
      if (hashes.emplace(each[0], each[1]).first->second != each[1]) fail(each[0], done, failed);
    }
  }
}

/// Ends the run. All ranks call for the same set of ranks; those in it say the same.
void ReplicaCheck::fail(std::uint64_t name, std::int64_t done, bool failed) {
  const auto found = copies_.find(name);
  std::string hashes;
  if (found != copies_.end()) {
    for (const std::size_t part : found->second.parts) {
      hashes.append(reinterpret_cast<const char*>(&parts_[part].hash), sizeof(std::uint64_t));
    }
  }
  const std::vector<std::string> all = all_gather_texts(trainer_.everyone(), hashes);
  if (found == copies_.end()) {
    // Until one of them has ended the run.
    all_gather_texts(trainer_.everyone(), "");
    return;
  }
  const auto& [ranks, parts] = found->second;
  std::vector<std::int64_t> odd;
  std::string first;
  std::set<std::string> others;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<std::uint64_t> theirs(ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::string& text = all[static_cast<std::size_t>(ranks[r])];
      if (text.size() != hashes.size()) continue;  // of a rank that does not do as it should
      std::memcpy(&theirs[r], text.data() + p * sizeof(std::uint64_t), sizeof(std::uint64_t));
    }
    const std::vector<std::int64_t> differ = odd_ranks(ranks, theirs);
    const Part& part = parts_[parts[p]];
    if (differ.empty() || (failed && part.kept == Kept::weights)) continue;
    const std::string what = text_of(part.kept, *part.tensor);
    if (first.empty()) {
      first = what;
      odd = differ;
    } else if (what != first) {
      others.insert(what);
    }
  }
  const std::string more = others.empty() ? ""
                                          : fmt::format(" (and {} tensor{} more)", others.size(),
                                                        others.size() == 1 ? "" : "s");
  std::vector<std::int64_t> rest;
  std::ranges::set_difference(ranks, odd, std::back_inserter(rest));
  const bool one = odd.size() == 1;
  const std::string whom =
      rest.empty() ? "one another"
                   : fmt::format("{} of {}", rest.size() == 1 ? "that" : "those", ranks_text(rest));
  abort_.raise(fmt::format(
      "{}: {} of {} {} from {} after step {}{}{}: memory, a device or a link altered {}; resume "
      "from the last checkpoint",
      ranks_text(odd), one ? "the copy" : "the copies", first, one ? "differs" : "differ", whom,
      done, more, rest.empty() ? ", and none is in the majority" : "",
      rest.empty() ? "one of them"
      : one        ? "it"
                   : "them"));
  abort_.check();
}

}  // namespace shardwise::exec
