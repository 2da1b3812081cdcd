#include "simulator/traces/profiler_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace shardwise::sim {
namespace {

constexpr std::size_t kMostEvents = 10'000'000;
constexpr std::size_t kMostProfilerNameBytes = std::size_t{256} << 20;

// Categories that the profiler has and that say nothing of when the device worked on what.
constexpr std::array<std::string_view, 18> kKnown = {"",
                                                     "async",
                                                     "PythonFunction",
                                                     "Trace",
                                                     "ac2g",
                                                     "async_cpu_to_gpu",
                                                     "fwdbwd",
                                                     "cpu_op",
                                                     "user_annotation",
                                                     "gpu_user_annotation",
                                                     "python_function",
                                                     "cpu_instant_event",
                                                     "external_correlation",
                                                     "overhead",
                                                     "cuda_sync",
                                                     "cuda_event",
                                                     "cuda_runtime",
                                                     "cuda_driver"};

/// A call that puts work on the device: cudaLaunchKernel, cuLaunchKernelEx, hipMemcpyAsync,
/// cudaGraphLaunch …
bool launches(std::string_view name) {
  for (const std::string_view word : {"Launch", "Memcpy", "Memset"}) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

/// A category's name since PyTorch 1.11; profilers of 2021 had others.
/// Source: pytorch/kineto, libkineto/src/output_json.cpp, until February 2022.
std::string_view category_of(const TraceEvent& event) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOld = {
      {{"Kernel", "kernel"},
       {"Memcpy", "gpu_memcpy"},
       {"Memset", "gpu_memset"},
       {"Runtime", "cuda_runtime"},
       {"Operator", "cpu_op"}}};
  for (const auto& [old, now] : kOld) {
    if (event.category == old) return now;
  }
  return event.category;
}

bool timed(ProfilerRecord& record, const TraceEvent& event) {
  if (event.timed && event.duration_ns >= 0) return true;
  record.problem = fmt::format("a {} event lacks its {}", event.category,
                               event.timed ? "dur (duration)" : "ts (time)");
  return false;
}

bool add_work(ProfilerRecord& record, const TraceEvent& event, bool kernel) {
  if (!timed(record, event)) return false;
  ProfilerRecord::Work work;
  work.start = event.start_ns;
  work.duration = event.duration_ns;
  work.correlation = event.correlation;
  work.stream = static_cast<std::uint32_t>(event.thread);
  work.device = static_cast<std::int16_t>(std::clamp<std::int64_t>(event.process, -1, 30'000));
  work.name = record.names.number_of(event.name);
  if (work.name >= record.kinds.size()) record.kinds.resize(record.names.size());
  WorkKind& kind = record.kinds[work.name];
  kind = kernel ? kind_of_kernel(event.name) : kind_of_copy(event.name);
  work.kind = kind;
  if (kernel && !computes(kind) && !event.collective.empty()) {
    work.kind = kind_of_collective(event.collective);
    work.said = true;
  }
  record.work.push_back(work);
  return true;
}

bool add_mark(ProfilerRecord& record, const TraceEvent& event, ProfilerRecord::MarkKind kind) {
  if (!timed(record, event)) return false;
  record.marks.push_back({kind, event.thread, event.start_ns, event.start_ns + event.duration_ns,
                          record.names.number_of(event.name)});
  return true;
}

bool take(ProfilerRecord& record, const TraceEvent& event) {
  using MarkKind = ProfilerRecord::MarkKind;
  const std::string_view category = category_of(event);
  const std::string_view name = event.name;
  if (ProfilerRecord::is_work(event)) return add_work(record, event, category == "kernel");
  if (category == "cuda_runtime" || category == "cuda_driver") {
    if (event.correlation < 0 || !launches(name)) return true;
    if (!timed(record, event)) return false;
    record.launches.push_back({event.correlation, event.start_ns, event.thread});
    return true;
  }
  if (category == "cpu_op" || category == "user_annotation") {
    if (name.starts_with("ProfilerStep#")) return add_mark(record, event, MarkKind::step);
    if (name.starts_with("autograd::engine::evaluate_function")) {
      return add_mark(record, event, MarkKind::backward);
    }
    if (name.starts_with("Optimizer.")) return add_mark(record, event, MarkKind::optimizer);
    if (name.starts_with("nccl:")) return add_mark(record, event, MarkKind::collective);
    return true;
  }
  if (std::find(kKnown.begin(), kKnown.end(), category) != kKnown.end()) return true;
  const bool counted = record.not_read.contains(event.category);
  if (counted || record.not_read.size() < kMostCategories) ++record.not_read[event.category];
  return true;
}

}  // namespace

bool ProfilerRecord::is_work(const TraceEvent& event) {
  const std::string_view category = category_of(event);
  return event.phase == 'X' &&
         (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset");
}

bool ProfilerRecord::add(const TraceEvent& event) {
  if (event.phase != 'X') return true;
  if (!take(*this, event)) return false;
  const bool many = work.size() > kMostEvents || launches.size() > kMostEvents ||
                    marks.size() > kMostEvents || names.bytes() > kMostProfilerNameBytes;
  if (!many) return true;
  problem = fmt::format("more than {} million events of the device: record fewer steps",
                        kMostEvents / 1'000'000);
  return false;
}

}  // namespace shardwise::sim
