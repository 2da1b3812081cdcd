#include "tests/bench/program_columns.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "planner/spec/text/check.h"

namespace shardwise::sim {
namespace {

using Numbers = std::vector<std::uint32_t>;

/// What each operation of a stage waits for, less what follows from the rest: by operation, in
/// program order. The operation before it on its stream counts as waited for.
std::vector<Numbers> needed_waits(const StageProgram& stage) {
  using Known = std::array<std::uint32_t, kStreams>;  // operations of each stream known to be over
  std::vector<Numbers> needed(stage.operations.size());
  std::vector<Known> known(stage.operations.size());
  std::vector<std::uint32_t> place(stage.operations.size());  // on its stream, from 1
  Known last{};
  std::array<std::uint32_t, kStreams> count{};
  Numbers all;
  for (std::uint32_t i = 0; i < stage.operations.size(); ++i) {
    const ProgramOp& op = stage.operations[i];
    const auto stream = static_cast<std::size_t>(op.stream);
    all.assign(stage.of(op.waits).begin(), stage.of(op.waits).end());
    if (count[stream] > 0) all.push_back(last[stream]);
    // The latest first: what it knows makes earlier ones superfluous.
    std::ranges::sort(all, std::ranges::greater{});
    for (const std::uint32_t wait : all) {
      const auto on = static_cast<std::size_t>(stage.operations[wait].stream);
      if (known[i][on] >= place[wait]) continue;
      needed[i].push_back(wait);
      for (std::size_t s = 0; s < kStreams; ++s) {
        known[i][s] = std::max(known[i][s], known[wait][s]);
      }
    }
    place[i] = ++count[stream];
    known[i][stream] = place[i];
    last[stream] = i;
  }
  return needed;
}

/// The prices of each stage begin here, and one more.
std::vector<std::uint32_t> first_prices(const Workload& work) {
  std::vector<std::uint32_t> first = {0};
  for (const WorkProgram& program : work.programs) {
    first.push_back(first.back() + static_cast<std::uint32_t>(program.program->costs.size()));
  }
  return first;
}

}  // namespace

/// Makes the instructions of a workload.
class ColumnsBuilder {
 public:
  ColumnsBuilder(const Workload& work, ProgramColumns& made)
      : work_(work), made_(made), first_price_(first_prices(work)) {
    made_.prices_ = first_price_.back();
    duration({});
    collect();
    join_chains();
    emit();
  }

 private:
  /// An operation, the operations of a meeting, or a chain.
  struct Unit {
    Numbers waits;  // for units
    Numbers followers;
    Numbers terms;  // prices
    Numbers others;
    std::uint32_t operations = 0;
    bool meets = false;
    bool joined = false;  // to the unit that it waited for
  };

  void collect() {
    std::vector<std::uint32_t> unit_of(work_.operations);
    std::vector<std::uint32_t> of_slot(work_.slots.size(), kNoUnit);
    for (const Actor& actor : work_.actors) {
      const WorkProgram& program = work_.programs[actor.program];
      for (std::size_t i = 0; i < program.program->operations.size(); ++i) {
        const std::int32_t slot = program.slot_of[i];
        std::uint32_t unit = slot < 0 ? kNoUnit : of_slot[static_cast<std::size_t>(slot)];
        if (unit == kNoUnit) {
          unit = static_cast<std::uint32_t>(units_.size());
          units_.emplace_back().meets = slot >= 0;
          if (slot >= 0) of_slot[static_cast<std::size_t>(slot)] = unit;
        }
        unit_of[actor.base + i] = unit;
        add_price(units_[unit], actor, program.program->operations[i]);
      }
    }
    for (const Actor& actor : work_.actors) link(actor, unit_of);
  }

  void add_price(Unit& unit, const Actor& actor, const ProgramOp& op) {
    const std::uint32_t price = first_price_[actor.program] + static_cast<std::uint32_t>(op.cost);
    // The other ranks of a meeting pay alike.
    (unit.terms.empty() ? unit.terms : unit.others) = {price};
    ++unit.operations;
  }

  void link(const Actor& actor, const std::vector<std::uint32_t>& unit_of) {
    const std::vector<Numbers> needed = needed_waits(*work_.programs[actor.program].program);
    for (std::size_t i = 0; i < needed.size(); ++i) {
      const std::uint32_t unit = unit_of[actor.base + i];
      for (const std::uint32_t wait : needed[i]) {
        const std::uint32_t before = unit_of[actor.base + wait];
        if (std::ranges::find(units_[unit].waits, before) != units_[unit].waits.end()) continue;
        units_[unit].waits.push_back(before);
        units_[before].followers.push_back(unit);
      }
    }
  }

  /// A unit joins the one before it where neither waits for, nor is waited for by, another.
  void join_chains() {
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      if (units_[u].joined) continue;
      while (!units_[u].meets && units_[u].followers.size() == 1) {
        const std::uint32_t next = units_[u].followers.front();
        Unit& after = units_[next];
        if (after.meets || after.waits.size() != 1) break;
        Unit& unit = units_[u];
        unit.terms.insert(unit.terms.end(), after.terms.begin(), after.terms.end());
        unit.followers = std::move(after.followers);
        after.joined = true;
        for (const std::uint32_t f : unit.followers) {
          std::ranges::replace(units_[f].waits, next, u);
        }
      }
    }
  }

  void emit() {
    std::vector<std::uint32_t> missing(units_.size());
    uses_.resize(units_.size());
    place_.resize(units_.size());
    made_.result_ = new_place();
    Numbers ready;
    for (std::uint32_t u = static_cast<std::uint32_t>(units_.size()); u-- > 0;) {
      missing[u] = units_[u].joined ? 0 : static_cast<std::uint32_t>(units_[u].waits.size());
      uses_[u] = static_cast<std::uint32_t>(units_[u].followers.size());
      if (!units_[u].joined && missing[u] == 0) ready.push_back(u);
    }
    while (!ready.empty()) {
      const std::uint32_t u = ready.back();
      ready.pop_back();
      place_[u] = instruction(units_[u]);
      ++made_.operations_;
      for (const std::uint32_t f : units_[u].followers) {
        if (--missing[f] == 0) ready.push_back(f);
      }
      if (uses_[u] > 0) continue;
      // Nothing waits for it: the step ends no earlier.
      add(made_.result_, place_[u], kNothing, made_.result_);
      free_.push_back(place_[u]);
    }
    const bool all = std::ranges::all_of(missing, [](std::uint32_t each) { return each == 0; });
    SHARDWISE_CHECK(all, "operations wait in a circle");
  }

  /// \returns the place of its end
  std::uint32_t instruction(const Unit& unit) {
    const Numbers& waits = unit.waits;
    std::uint32_t latest = waits.empty() ? 0 : place_[waits.front()];
    const std::uint32_t between = waits.size() > 2 ? new_place() : 0;
    for (std::size_t i = 1; i + 1 < waits.size(); ++i) {
      add(latest, place_[waits[i]], kNothing, between);
      latest = between;
    }
    const std::uint32_t other = waits.empty() ? 0 : place_[waits.back()];
    if (between > 0) free_.push_back(between);
    for (const std::uint32_t wait : waits) {
      if (--uses_[wait] == 0) free_.push_back(place_[wait]);
    }
    const std::uint32_t to = new_place();
    add(latest, other, duration(unit), to);
    return to;
  }

  void add(std::uint32_t after, std::uint32_t other, std::uint32_t duration, std::uint32_t to) {
    made_.instructions_.push_back({after, other, duration, to});
  }

  std::uint32_t new_place() {
    if (free_.empty()) return static_cast<std::uint32_t>(made_.places_++);
    const std::uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }

  std::uint32_t duration(const Unit& unit) {
    Numbers terms = unit.terms;
    std::ranges::sort(terms);
    const auto number = static_cast<std::uint32_t>(made_.durations_.size());
    const auto [found, is_new] = known_.try_emplace({std::move(terms), unit.others}, number);
    if (is_new) {
      made_.durations_.push_back({range(found->first.first), range(found->first.second)});
    }
    return found->second;
  }
  IndexRange range(const Numbers& terms) {
    const auto begin = static_cast<std::uint32_t>(made_.terms_.size());
    made_.terms_.insert(made_.terms_.end(), terms.begin(), terms.end());
    return {begin, static_cast<std::uint32_t>(made_.terms_.size())};
  }

  static constexpr std::uint32_t kNoUnit = ~std::uint32_t{0};
  static constexpr std::uint32_t kNothing = 0;  // the first duration
  const Workload& work_;
  ProgramColumns& made_;
  std::vector<std::uint32_t> first_price_;
  std::vector<Unit> units_;
  Numbers place_;  // of the end of each unit
  Numbers uses_;   // of that end, still to come
  Numbers free_;
  std::map<std::pair<Numbers, Numbers>, std::uint32_t> known_;
};

ProgramColumns::ProgramColumns(const Workload& work) {
  SHARDWISE_CHECK(work.launch.issue == 0, "columns know no host");
  ColumnsBuilder(work, *this);
}

std::vector<double> price_column(const Workload& work) {
  std::vector<double> column;
  for (const WorkProgram& program : work.programs) {
    for (std::size_t c = 0; c < program.program->costs.size(); ++c) {
      column.push_back(program.prices[c].seconds);
    }
  }
  return column;
}

}  // namespace shardwise::sim
