#include "simulator/clock/memory.h"

#include <algorithm>

#include "planner/spec/report/memory_labels.h"
#include "simulator/clock/caching_allocator.h"

namespace shardwise::sim {
namespace {

/// A buffer begins or ends.
struct Change {
  double at = 0;
  bool begins = false;
  std::uint32_t op = 0;
  std::uint32_t buffer = 0;
};

std::vector<Change> changes_of(const StageProgram& stage, std::span<const double> start,
                               std::span<const double> end) {
  std::vector<Change> changes;
  for (std::uint32_t i = 0; i < stage.operations.size(); ++i) {
    const ProgramOp& op = stage.operations[i];
    for (const std::uint32_t buffer : stage.of(op.allocates)) {
      changes.push_back({start[i], true, i, buffer});
    }
    for (const std::uint32_t buffer : stage.of(op.frees)) {
      changes.push_back({end[i], false, i, buffer});
    }
  }
  // At one moment: what operations free that were issued before, then what the next allocate. An
  // operation of no length frees after it allocates.
  std::stable_sort(changes.begin(), changes.end(), [&](const Change& a, const Change& b) {
    if (a.at != b.at) return a.at < b.at;
    const bool a_late = a.begins || start[a.op] == a.at;
    const bool b_late = b.begins || start[b.op] == b.at;
    if (a_late != b_late) return b_late;
    return a.op < b.op || (a.op == b.op && a.begins && !b.begins);
  });
  return changes;
}

/// What the framework's allocator does not see, as Ledger::allocated.
bool outside(const ProgramBuffer& buffer) {
  return group_of(buffer.category) == MemoryGroup::outside ||
         buffer.category == MemoryCategory::allocator_slack;
}

/// The two ways to count.
class Counter {
 public:
  Counter(const StageProgram& stage, AllocatorKind kind)
      : stage_(stage), kind_(kind), block_of_(stage.buffers.size(), kAbsent) {}

  bool has(std::uint32_t buffer) const { return block_of_[buffer] != kAbsent; }
  const CategoryBytes& by_category() const { return by_category_; }
  void begin(std::uint32_t buffer, Stream stream) {
    const std::int64_t before = allocated();
    const std::int64_t bytes = stage_.buffers[buffer].bytes;
    if (kind_ == AllocatorKind::caching) {
      block_of_[buffer] = caching_.allocate(bytes, stream);
    } else {
      block_of_[buffer] = 0;
      sum_ += bytes;
    }
    category_of(buffer) += allocated() - before;
  }
  void end(std::uint32_t buffer) {
    const std::int64_t before = allocated();
    if (kind_ == AllocatorKind::caching) {
      caching_.release(block_of_[buffer]);
    } else {
      sum_ -= stage_.buffers[buffer].bytes;
    }
    block_of_[buffer] = kAbsent;
    category_of(buffer) += allocated() - before;
  }
  std::int64_t allocated() const {
    return kind_ == AllocatorKind::caching ? caching_.allocated() : sum_;
  }
  std::int64_t reserved() const {
    return kind_ == AllocatorKind::caching ? caching_.reserved() : sum_;
  }

 private:
  static constexpr std::int32_t kAbsent = -1;
  std::int64_t& category_of(std::uint32_t buffer) {
    return by_category_[static_cast<std::size_t>(stage_.buffers[buffer].category)];
  }
  const StageProgram& stage_;
  AllocatorKind kind_;
  CachingAllocator caching_;
  std::vector<std::int32_t> block_of_;
  std::int64_t sum_ = 0;
  CategoryBytes by_category_{};
};

/// Makes the changes one after the other. \param at_begin  sees what is resident
/// \param after  sees each change. \returns buffers used wrongly, whose changes were not made
template <class AtBegin, class After>
std::vector<std::uint32_t> follow(const StageProgram& stage, AllocatorKind allocator,
                                  std::span<const Change> changes, const AtBegin& at_begin,
                                  const After& after) {
  std::vector<std::uint32_t> misused;
  Counter counter(stage, allocator);
  for (std::uint32_t b = 0; b < stage.buffers.size(); ++b) {
    const ProgramBuffer& buffer = stage.buffers[b];
    if (buffer.resident && !outside(buffer)) counter.begin(b, Stream::compute);
  }
  at_begin(counter);
  for (std::size_t c = 0; c < changes.size(); ++c) {
    const Change& change = changes[c];
    if (counter.has(change.buffer) == change.begins) {
      misused.push_back(change.buffer);
      continue;
    }
    if (change.begins) {
      counter.begin(change.buffer, stage.operations[change.op].stream);
    } else {
      counter.end(change.buffer);
    }
    after(c, counter);
  }
  return misused;
}

}  // namespace

MemoryCourse memory_over_time(const StageProgram& stage, std::span<const double> start,
                              std::span<const double> end, AllocatorKind allocator) {
  MemoryCourse course;
  const std::vector<Change> changes = changes_of(stage, start, end);
  std::size_t peak = 0;  // changes made when most was allocated
  const auto at_begin = [&](const Counter& counter) {
    course.moments.push_back({0, counter.allocated(), counter.reserved()});
    course.peak_allocated = counter.allocated();
    course.peak_reserved = counter.reserved();
  };
  const auto after = [&](std::size_t c, const Counter& counter) {
    const double at = changes[c].at;
    if (counter.allocated() > course.peak_allocated) {
      course.peak_allocated = counter.allocated();
      course.peak_at = at;
      peak = c + 1;
    }
    course.peak_reserved = std::max(course.peak_reserved, counter.reserved());
    const MemoryMoment now = {at, counter.allocated(), counter.reserved()};
    if (course.moments.back().at == at) {
      course.moments.back() = now;
    } else {
      course.moments.push_back(now);
    }
  };
  course.misused = follow(stage, allocator, changes, at_begin, after);
  // The same changes again, up to the peak: a list kept all along would cost more.
  std::vector<std::uint8_t> is_alive(stage.buffers.size());
  for (std::size_t b = 0; b < is_alive.size(); ++b) {
    is_alive[b] = stage.buffers[b].resident && !outside(stage.buffers[b]) ? 1 : 0;
  }
  for (std::size_t c = 0; c < peak; ++c) is_alive[changes[c].buffer] = changes[c].begins ? 1 : 0;
  for (std::uint32_t b = 0; b < is_alive.size(); ++b) {
    if (is_alive[b] != 0) course.alive.push_back(b);
  }
  return course;
}

std::vector<CategoryBytes> category_columns(const StageProgram& stage,
                                            std::span<const double> start,
                                            std::span<const double> end, AllocatorKind allocator,
                                            double length, std::size_t columns) {
  const std::vector<Change> changes = changes_of(stage, start, end);
  std::vector<CategoryBytes> made;
  made.reserve(columns);
  std::int64_t most = 0;  // in the last column
  CategoryBytes now{};
  std::int64_t allocated = 0;
  // What is there when a column begins is there in it.
  const auto reach = [&](std::size_t column) {
    while (made.size() <= column) {
      made.push_back(now);
      most = allocated;
    }
  };
  const auto at_begin = [&](const Counter& counter) {
    now = counter.by_category();
    allocated = counter.allocated();
    reach(0);
  };
  const auto after = [&](std::size_t c, const Counter& counter) {
    const double place = changes[c].at / length * static_cast<double>(columns);
    reach(std::min(columns - 1, static_cast<std::size_t>(std::max(0.0, place))));
    now = counter.by_category();
    allocated = counter.allocated();
    if (allocated <= most) return;
    most = allocated;
    made.back() = now;
  };
  follow(stage, allocator, changes, at_begin, after);
  reach(columns - 1);
  return made;
}

}  // namespace shardwise::sim
