#include "executor/launch/rank_devices.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <utility>

#include "executor/device/cpu/cpu_device.h"
#include "executor/launch/command.h"
#include "executor/launch/gpu_library.h"
#include "executor/launch/together.h"
#include "planner/cost/kernels/gpu_workspace.h"
#include "planner/engines/executed.h"
#include "planner/estimate/estimate.h"
#include "planner/search/advice/cheapest_fix.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

constexpr const char* kByCopies =
    "ranks share one GPU and move tensors by copies: timings mean nothing";
constexpr const char* kByHost =
    "ranks share one GPU and move tensors through the host: timings mean nothing";

/// What names this machine: containers of one machine have host names of their own.
std::string this_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(boot, id);
  return fmt::format("{} {}", name.data(), id);
}

/// What every rank says, in their order, as a terminal may show it; `own` alone of a process that
/// is alone.
std::vector<std::string> gathered(World* world, const std::string& own) {
  constexpr std::size_t kLongest = 600;
  if (world == nullptr) return {own};
  std::vector<std::string> all =
      all_gather_texts(*world->control_group(all_ranks(*world), Control::hosts), own);
  for (std::string& each : all) each = shown(each, kLongest);
  return all;
}

HostRanks ranks_of_host(World* world, int ranks) {
  if (world == nullptr) return {0, ranks, false, true};
  const std::vector<std::string> hosts = gathered(world, this_host());
  const auto own = hosts.begin() + world->rank();
  return {static_cast<int>(std::count(hosts.begin(), own, *own)),
          static_cast<int>(std::ranges::count(hosts, *own)), true,
          std::ranges::count(hosts, *own) == std::ssize(hosts)};
}

/// Bytes that a plan's ranks take of a GPU besides its context. \param by_nccl  tensors move by it,
/// whose communicators take memory too
Bytes needed_by(const Plan& plan, Bytes& context, bool by_nccl) {
  const StepReport report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  Bytes most(0);
  for (const StageMemory& stage : report.stages) {
    for (const Ledger& phase : stage.phases) {
      const Bytes taken =
          phase.allocated() + Bytes(by_nccl ? phase[MemoryCategory::communicator] : 0);
      if (taken <= most) continue;
      most = taken;
      context = phase.total() - taken;
    }
  }
  return most;
}

}  // namespace

Diagnostics problems_of_architecture(const Plan& plan, const DeviceFacts& facts) {
  const GpuSpec& planned = plan.cluster.gpu;
  const std::string_view own = cuda_architecture(facts.capability);
  if (!own.empty() && own == cuda_architecture(cuda_capability(planned))) return {};
  return {{"plan", 0, 0, "/cluster/gpu/architecture",
           fmt::format("is {} ({}), and the GPU here is {} ({})", planned.architecture,
                       planned.label, facts.name, own.empty() ? "unknown" : own),
           "plan for a cluster of this GPU (shardwise list clusters)"}};
}

Diagnostics problems_of_memory(const Plan& plan, const DeviceFacts& facts, bool by_nccl) {
  Bytes context(0);
  const Bytes needed = needed_by(plan, context, by_nccl);
  const Bytes free(facts.free_bytes);
  if (needed <= free) return {};
  const std::optional<Fix> fix =
      cheapest_fix(plan.model, plan.cluster, plan.job, plan.engine, plan.layout, free + context);
  return {{"plan", 0, 0, "/layout",
           fmt::format("needs {} of {}, where {} are free", format_bytes(needed), facts.name,
                       format_bytes(free)),
           fix ? "plan with " + to_string(*fix) : "no single change of the layout is enough"}};
}

Diagnostics problems_of_sharing(const std::vector<DeviceFacts>& by_rank) {
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    const auto end = by_rank.begin() + static_cast<std::ptrdiff_t>(rank);
    const auto same = std::ranges::find(by_rank.begin(), end, end->uuid, &DeviceFacts::uuid);
    if (same == end) continue;
    return {wrong_use("--device",
                      fmt::format("ranks {} and {} have one GPU, {} {}", same - by_rank.begin(),
                                  rank, same->name, same->uuid),
                      "start no more ranks on a host than it has GPUs, choose one for each by "
                      "CUDA_VISIBLE_DEVICES, or add --share-gpu, where timings mean nothing")};
  }
  return {};
}

Diagnostics problems_of_mixture(const std::vector<DeviceFacts>& by_rank) {
  const auto alike = [&](const DeviceFacts& each) {
    return each.name == by_rank.front().name && each.capability == by_rank.front().capability;
  };
  const auto other = std::ranges::find_if_not(by_rank, alike);
  if (other == by_rank.end()) return {};
  return {wrong_use("--device",
                    fmt::format("rank {} has a GPU {}, rank 0 one {}", other - by_rank.begin(),
                                other->name, by_rank.front().name),
                    "run on GPUs of one kind, or choose them by CUDA_VISIBLE_DEVICES")};
}

namespace {

/// Of all ranks, from what each process knows of its own: capability, identity and name.
std::vector<DeviceFacts> facts_of_all(World* world, std::vector<DeviceFacts> own) {
  if (world == nullptr) return own;
  const DeviceFacts& mine = own.front();
  std::vector<DeviceFacts> all;
  for (const std::string& each :
       gathered(world, fmt::format("{} {} {}", mine.capability, mine.uuid, mine.name))) {
    std::istringstream words(each);
    DeviceFacts& facts = all.emplace_back();
    words >> facts.capability >> facts.uuid;
    std::getline(words >> std::ws, facts.name);
  }
  return all;
}

/// What keeps a plan from what --device says.
Diagnostics problems_of_kind(const ClusterSpec& cluster, DeviceKind kind) {
  const GpuSpec& planned = cluster.gpu;
  if (kind == DeviceKind::cuda && planned.vendor != "nvidia") {
    return {wrong_use("--device", fmt::format("cuda, and the plan is for {}", planned.label),
                      "make a plan for a cluster with GPUs of NVIDIA's, or leave --device out")};
  }
  if (kind == DeviceKind::cpu && !executor_trains_on(cluster)) {
    return {wrong_use("--device", fmt::format("cpu, and the plan is for {}", planned.label),
                      "make a plan for a cluster of CPUs, or leave --device out where there is no "
                      "GPU")};
  }
  return {};
}

/// Why NCCL, of which the user has said how to use it, is not used at all.
std::string why_no_nccl(bool on_gpus, const GpuPlace& place) {
  if (!on_gpus) return "ranks on the CPU move tensors without NCCL";
  if (place.ranks == 1) return "one rank moves no tensors";
  return place.sharing == GpuSharing::threads
             ? "ranks of one process that share a GPU move tensors "
               "by copies"
             : "";
}

/// Bytes that programs of this machine may still take. Source: Linux,
/// Documentation/filesystems/proc.rst, meminfo.
Bytes available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::int64_t kib = 0;
  for (std::string unit; file >> key >> kib; std::getline(file, unit)) {
    if (key == "MemAvailable:") return Bytes(kib * 1024);
  }
  return Bytes(INT64_MAX);
}

/// Of a plan for GPUs that this host is to train, \param ranks of it here, \param why not on GPUs
Diagnostics problems_of_host_memory(const Plan& plan, int ranks, const std::string& why) {
  Bytes context(0);
  const Bytes needed = needed_by(plan, context, false) * ranks;
  const Bytes available = available_memory();
  if (needed <= available) return {};
  return {{"plan", 0, 0, "/layout",
           fmt::format("needs {} of this host for {} rank{}, where {} are available",
                       format_bytes(needed), ranks, ranks == 1 ? "" : "s", format_bytes(available)),
           why + "; --device cuda refuses to train without GPUs"}};
}

/// Whether NVIDIA's driver is here, asked without the library of GPUs.
/// Source: NVIDIA, driver README, chapter 7 (device files); Microsoft, "CUDA on WSL" (the last).
bool has_driver() {
  return std::ranges::any_of(
      std::array{"/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg"},
      [](const char* path) { return ::access(path, F_OK) == 0; });
}

/// The platform where GPUs are to be used, none where the CPU is: then a note says why. A library
/// that is not trusted stops a run that needs it, as one on a machine with GPUs does.
std::unique_ptr<GpuPlatform> platform_for(const DeviceOptions& options, std::string& note) {
  GpuLibrary library = open_gpu_library();
  if (library.refused && has_driver()) throw IoError(library.why_none);
  const bool absent = library.platform == nullptr || library.platform->absent();
  const std::string why =
      library.platform == nullptr ? library.why_none : library.platform->problem();
  if (absent && options.kind == DeviceKind::planned) {
    note = fmt::format("the plan is for GPUs and trains on the CPU, where times mean nothing: {}",
                       why);
    return nullptr;
  }
  if (!why.empty()) throw IoError(why);
  return std::move(library.platform);
}

}  // namespace

Result<RankDevices> RankDevices::open(const Plan& plan, const DeviceOptions& options,
                                      World* world) {
  RankDevices devices;
  const Diagnostics other = problems_of_kind(plan.cluster, options.kind);
  if (!other.empty()) return other;
  const GpuSpec& planned = plan.cluster.gpu;
  const bool on_cpu = planned.vendor != "nvidia";
  if (on_cpu && !executor_trains_on(plan.cluster)) {
    devices.timings_note_ =
        fmt::format("the plan is for {} of {} and trains on the CPU, where times mean nothing",
                    planned.label, planned.vendor);
    devices.notes_.push_back(devices.timings_note_);
  }
  std::string note;
  if (!on_cpu) devices.platform_ = platform_for(options, note);
  if (!note.empty()) {
    devices.notes_.push_back(note);
    devices.timings_note_ = note;
  }
  const std::vector<std::string> kinds = gathered(world, devices.platform_ ? "GPUs" : "the CPU");
  for (std::size_t rank = 1; rank < kinds.size(); ++rank) {
    if (kinds[rank] == kinds.front()) continue;
    throw IoError(fmt::format("rank 0 would compute on {} and rank {} on {}", kinds.front(), rank,
                              kinds[rank]));
  }
  devices.options_ = options.gpus;
  devices.options_.deterministic = plan.job.deterministic;
  devices.restart_ = options.restart;
  devices.ranks_ = static_cast<int>(plan.layout.world());
  devices.first_rank_ = world == nullptr ? 0 : world->rank();
  const bool asked = options.gpus.nccl != NcclPolicy();
  if (!devices.platform_) {
    if (asked) devices.notes_.push_back("--nccl is not used: " + why_no_nccl(false, {}));
    for (const auto& [flag, given] : {std::pair("--share-gpu", options.share_gpu),
                                      {"--no-graph", !options.gpus.graphs},
                                      {"--libraries", !options.gpus.libraries.empty()}}) {
      if (given) devices.notes_.push_back(fmt::format("{} is not used: there is no GPU", flag));
    }
    if (note.empty()) return devices;
    const HostRanks host = ranks_of_host(world, devices.ranks_);
    const Together all = world == nullptr ? Together() : Together(*world);
    const Diagnostics large = all.gather(problems_of_host_memory(plan, host.count, note));
    if (!large.empty()) return large;
    return devices;
  }

  devices.host_ = ranks_of_host(world, devices.ranks_);
  devices.shared_ = options.share_gpu && devices.host_.count > 1;
  const std::vector<std::string> sharing = gathered(world, devices.shared_ ? "shared" : "own");
  const bool any_shared = std::ranges::find(sharing, "shared") != sharing.end();
  const GpuPlatform& platform = *devices.platform_;
  const Together together = world == nullptr ? Together() : Together(*world);
  Diagnostics problems;
  if (!devices.host_.processes && !devices.shared_ && devices.host_.count > platform.gpus()) {
    return wrong_use(
        "--ranks",
        fmt::format("{} ranks on this host, which has {} GPU{}", devices.host_.count,
                    platform.gpus(), platform.gpus() == 1 ? "" : "s"),
        "start as many as there are GPUs, or add --share-gpu, where timings mean nothing");
  }

  std::vector<DeviceFacts> facts;
  const bool by_nccl = why_no_nccl(true, devices.place(devices.first_rank_)).empty();
  for (int i = 0; i < (devices.host_.processes ? 1 : devices.host_.count); ++i) {
    DeviceFacts own = platform.facts(devices.place(devices.first_rank_ + i).gpu);
    const std::string unknown = platform.problem_of_capability(own.capability);
    if (!unknown.empty()) throw IoError(fmt::format("{}: {}", own.name, unknown));
    if (devices.shared_) own.free_bytes /= devices.host_.count;
    Diagnostics unfit = problems_of_architecture(plan, own);
    if (unfit.empty()) unfit = problems_of_memory(plan, own, by_nccl);
    if (problems.empty()) problems = unfit;
    facts.push_back(own);
  }
  const std::vector<DeviceFacts> all = facts_of_all(world, facts);
  if (!any_shared) {
    for (const Diagnostic& each : problems_of_sharing(all)) problems.push_back(each);
  }
  for (const Diagnostic& each : problems_of_mixture(all)) problems.push_back(each);
  problems = together.gather(problems);
  if (!problems.empty()) return problems;

  const GpuPlace first = devices.place(devices.first_rank_);
  for (std::string& line : devices.platform_->open_libraries(first, options.gpus)) {
    devices.notes_.push_back(std::move(line));
  }
  if (const std::string why = why_no_nccl(true, first); asked && !why.empty()) {
    devices.notes_.push_back("--nccl is not used: " + why);
  }
  devices.notes_.push_back(fmt::format("{} x {}", devices.ranks_, all.front().name));
  if (any_shared) {
    devices.timings_note_ = devices.host_.processes ? kByHost : kByCopies;
    devices.notes_.push_back(devices.timings_note_);
  }
  return devices;
}

std::vector<std::string> describe_gpus() {
  std::vector<std::string> lines;
  try {
    const GpuLibrary library = open_gpu_library();
    if (library.platform == nullptr) return {"no GPUs: " + library.why_none};
    GpuPlatform& platform = *library.platform;
    if (platform.absent()) return {"no GPUs: " + platform.problem()};
    if (!platform.problem().empty()) throw IoError(platform.problem());
    for (int gpu = 0; gpu < platform.gpus(); ++gpu) {
      const DeviceFacts facts = platform.facts(gpu);
      lines.push_back(fmt::format("GPU {}: {}, compute capability {}.{}, {}", gpu, facts.name,
                                  facts.capability / 10, facts.capability % 10,
                                  format_bytes(Bytes(facts.total_bytes))));
    }
    GpuPlace place;
    std::vector<std::string> libraries = platform.open_libraries(place, {});
    try {
      place.ranks = 2;  // with the library that moves tensors
      libraries = platform.open_libraries(place, {});
    } catch (const std::exception& broken) {
      libraries.push_back(fmt::format("several GPUs cannot be used: {}", broken.what()));
    }
    lines.insert(lines.end(), libraries.begin(), libraries.end());
  } catch (const std::exception& broken) {
    lines.push_back(fmt::format("GPUs cannot be used: {}", broken.what()));
  }
  return lines;
}

/// Processes that a launcher gave GPUs of their own see these alone, and count from 0.
GpuPlace RankDevices::place(int rank) const {
  GpuPlace place;
  place.rank = rank;
  place.ranks = ranks_;
  place.in_process = host_.processes ? 1 : host_.count;
  place.gpu = shared_ ? 0 : (host_.first + rank - first_rank_) % platform_->gpus();
  if (shared_) place.sharing = host_.processes ? GpuSharing::processes : GpuSharing::threads;
  place.one_host = host_.all;
  place.restart = restart_;
  return place;
}

std::unique_ptr<Device> RankDevices::device(int rank) const {
  if (!platform_) return std::make_unique<CpuDevice>();
  return platform_->device(place(rank), options_);
}

}  // namespace shardwise::exec
