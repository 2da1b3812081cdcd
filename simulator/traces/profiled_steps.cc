#include "simulator/traces/profiled_steps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "simulator/traces/host_spans.h"

namespace shardwise::sim {
namespace {

using Record = ProfilerRecord;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr const char* kWhole = "whole trace";

/// A step's mark and what the device did for it.
struct StepSpan {
  std::string name;
  std::int64_t number = -1;
  std::int64_t start = std::numeric_limits<std::int64_t>::min();
  std::int64_t end = kNever;
  std::int64_t thread = -1;
  std::int64_t backward_end = kNever;  // of the last on the host
  std::int64_t first = kNever;         // work of the device
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
};

std::int64_t number_of(std::string_view name) {
  const std::size_t mark = name.find('#');
  std::int64_t number = -1;
  if (mark != std::string_view::npos) {
    std::from_chars(name.data() + mark + 1, name.data() + name.size(), number);
  }
  return number;
}

/// A kernel that only a backward pass runs, by its name.
bool names_backward(std::string_view name) {
  const std::string text = lower(name);
  const std::array<std::string_view, 4> words = {"bwd", "backward", "dgrad", "wgrad"};
  return std::ranges::any_of(
      words, [&text](std::string_view word) { return text.find(word) != std::string::npos; });
}

class StepCutter {
 public:
  explicit StepCutter(const Record& record)
      : record_(record),
        backward_(record, Record::MarkKind::backward),
        optimizer_(record, Record::MarkKind::optimizer),
        collective_(record, Record::MarkKind::collective),
        launches_(record.launches) {
    std::stable_sort(launches_.begin(), launches_.end(),
                     [](const Record::Launch& a, const Record::Launch& b) {
                       return a.correlation < b.correlation;
                     });
    find_steps();
    find_device();
  }

  ProfiledSteps cut() {
    ProfiledSteps made;
    std::vector<DeviceWork> work;
    std::map<std::pair<std::uint32_t, WorkKind>, KernelTime> kernels;
    work.reserve(record_.work.size());
    for (const Record::Work& each : record_.work) {
      if (each.device != device_) {
        ++made.other_devices;
        continue;
      }
      ++made.operations;
      const Record::Launch* launch = launch_of(each);
      if (launch == nullptr) ++made.without_launch;
      StepSpan* step = step_at(launch == nullptr ? each.start : launch->at);
      if (step != nullptr) {
        step->first = std::min(step->first, each.start);
        step->last = std::max(step->last, each.start + each.duration);
      }
      const WorkKind kind = kind_of(each, launch);
      work.push_back(
          {seconds(each.start), seconds(each.start + each.duration), kind, phase_of(launch, step)});
      KernelTime& time = kernels[{each.name, kind}];
      time.kind = kind;
      ++time.count;
      time.time += Seconds(static_cast<double>(each.duration) * kNanosecond);
    }
    add_steps(work, made);
    count_overlaps(made);
    for (auto& [key, time] : kernels) {
      time.name = record_.names[key.first];
      made.kernels.push_back(std::move(time));
    }
    made.has_backward =
        !backward_.empty() || std::ranges::any_of(made.kernels, [](const KernelTime& each) {
          return names_backward(each.name);
        });
    std::stable_sort(made.kernels.begin(), made.kernels.end(),
                     [](const KernelTime& a, const KernelTime& b) { return a.time > b.time; });
    return made;
  }

 private:
  /// Since the first work of all, so that nanoseconds of a clock since 1970 are not lost.
  double seconds(std::int64_t moment) const {
    return static_cast<double>(moment - origin_) * kNanosecond;
  }

  void find_steps() {
    for (const Record::Mark& mark : record_.marks) {
      if (mark.kind != Record::MarkKind::step) continue;
      StepSpan step;
      step.name = record_.names[mark.name];
      step.number = number_of(step.name);
      step.start = mark.start;
      step.end = mark.end;
      step.thread = mark.thread;
      steps_.push_back(std::move(step));
    }
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const StepSpan& a, const StepSpan& b) { return a.start < b.start; });
    // Two marks of one step are possible: the outer one is it.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (kept > 0 && steps_[i].start < steps_[kept - 1].end) continue;
      if (kept != i) steps_[kept] = std::move(steps_[i]);
      ++kept;
    }
    steps_.resize(kept);
    if (steps_.empty()) {
      steps_.emplace_back();
      steps_.back().name = kWhole;
    }
    for (StepSpan& step : steps_) {
      step.backward_end = backward_.last_end(step.start, step.end).value_or(kNever);
    }
  }

  /// The device with most work; a rank has one.
  void find_device() {
    std::map<std::int16_t, std::int64_t> time;
    for (const Record::Work& each : record_.work) {
      time[each.device] += each.duration + 1;
      origin_ = std::min(origin_, each.start);
    }
    device_ = std::max_element(time.begin(), time.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
              })->first;
  }

  const Record::Launch* launch_of(const Record::Work& work) const {
    const auto found = std::lower_bound(
        launches_.begin(), launches_.end(), work.correlation,
        [](const Record::Launch& a, std::int64_t value) { return a.correlation < value; });
    const bool known =
        work.correlation >= 0 && found != launches_.end() && found->correlation == work.correlation;
    return known ? &*found : nullptr;
  }

  StepSpan* step_at(std::int64_t moment) {
    auto after = std::upper_bound(
        steps_.begin(), steps_.end(), moment,
        [](std::int64_t value, const StepSpan& step) { return value < step.start; });
    if (after == steps_.begin()) return nullptr;
    --after;
    return moment < after->end ? &*after : nullptr;
  }

  WorkKind kind_of(const Record::Work& work, const Record::Launch* launch) const {
    // Messages and all-to-all run the same kernel; RCCL has one kernel for all collectives.
    const bool open = work.kind == WorkKind::send_recv || work.kind == WorkKind::other_collective;
    if (!open || work.said || launch == nullptr) return work.kind;
    const Record::Mark* call = collective_.at(launch->thread, launch->at);
    if (call == nullptr) return work.kind;
    const WorkKind called = kind_of_collective(record_.names[call->name]);
    const bool message = work.kind == WorkKind::send_recv;
    return message && called != WorkKind::all_to_all ? work.kind : called;
  }

  StepPhase phase_of(const Record::Launch* launch, const StepSpan* step) const {
    if (launch == nullptr || step == nullptr) return StepPhase::unknown;
    if (optimizer_.at(launch->thread, launch->at) != nullptr) return StepPhase::optimizer;
    if (backward_.at(launch->thread, launch->at) != nullptr) return StepPhase::backward;
    if (backward_.empty()) return StepPhase::unknown;
    const bool other_thread = step->thread >= 0 && launch->thread != step->thread;
    if (other_thread && backward_.has_thread(launch->thread)) return StepPhase::backward;
    return launch->at >= step->backward_end ? StepPhase::optimizer : StepPhase::forward;
  }

  /// Kernels of one stream do overlap: in graphs, where one is launched as another ends
  /// (programmatic dependent launch), by the clock (pytorch/kineto issue 136). A damaged duration
  /// does it by more.
  void count_overlaps(ProfiledSteps& made) const {
    constexpr std::int64_t kUsual = 1000;
    std::vector<const Record::Work*> sorted;
    for (const Record::Work& each : record_.work) {
      if (each.device == device_) sorted.push_back(&each);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
      return a->stream != b->stream ? a->stream < b->stream : a->start < b->start;
    });
    std::int64_t end = 0;  // of all before on the stream
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const Record::Work& each = *sorted[i];
      const bool first = i == 0 || sorted[i - 1]->stream != each.stream;
      const std::int64_t over = first ? 0 : std::min(end, each.start + each.duration) - each.start;
      if (over > kUsual) {
        ++made.overlapping;
        made.longest_overlap =
            std::max(made.longest_overlap, Seconds(static_cast<double>(over) * kNanosecond));
      }
      end = first ? each.start + each.duration : std::max(end, each.start + each.duration);
    }
  }

  void add_steps(std::vector<DeviceWork>& work, ProfiledSteps& made) {
    std::sort(work.begin(), work.end(),
              [](const DeviceWork& a, const DeviceWork& b) { return a.start < b.start; });
    std::vector<StepSpan*> busy;
    for (StepSpan& step : steps_) {
      if (step.first < kNever) busy.push_back(&step);
    }
    std::vector<std::pair<double, double>> extents;
    if (busy.empty()) {  // all was launched outside of marked steps
      double end = 0;
      for (const DeviceWork& each : work) end = std::max(end, each.end);
      made.steps.push_back({kWhole, profile_of(work, 0, end)});
      extents.emplace_back(0, end);
    }
    for (std::size_t i = 0; i < busy.size(); ++i) {
      const StepSpan& step = *busy[i];
      const bool followed = i + 1 < busy.size() && busy[i + 1]->number == step.number + 1 &&
                            busy[i + 1]->first > step.first;
      const double begin = seconds(step.first);
      const double end = seconds(followed ? busy[i + 1]->first : step.last);
      made.steps.push_back({step.name, profile_of(between(work, begin, end), begin, end)});
      extents.emplace_back(begin, end);
    }
    const auto [begin, end] = extents[made.median_index()];
    made.median_work = between(work, begin, end);
    for (DeviceWork& each : made.median_work) {
      each.start = std::max(each.start, begin) - begin;
      each.end = std::min(each.end, end) - begin;
    }
  }

  /// What overlaps a window, of work sorted by start.
  static std::vector<DeviceWork> between(const std::vector<DeviceWork>& work, double begin,
                                         double end) {
    std::vector<DeviceWork> found;
    for (const DeviceWork& each : work) {
      if (each.start >= end) break;
      if (each.end > begin || each.start >= begin) found.push_back(each);
    }
    return found;
  }

  const Record& record_;
  HostSpans backward_;
  HostSpans optimizer_;
  HostSpans collective_;
  std::vector<Record::Launch> launches_;
  std::vector<StepSpan> steps_;
  std::int16_t device_ = 0;
  std::int64_t origin_ = kNever;
};

}  // namespace

std::size_t ProfiledSteps::median_index() const {
  std::vector<std::size_t> order(steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [this](std::size_t i) { return steps[i].profile.length; });
  return order[(order.size() - 1) / 2];
}

ProfiledSteps profiled_steps(const ProfilerRecord& record) { return StepCutter(record).cut(); }

}  // namespace shardwise::sim
