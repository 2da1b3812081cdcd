#include "executor/engine/prepare_compute.h"

namespace shardwise::exec {

void prepare_compute(RankParts& parts, const std::vector<std::unique_ptr<ProgramBinder>>& binders,
                     ControlGroup& everyone, Device& device, DeviceStream& stream,
                     const std::function<void(const std::string& line)>& tell) {
  const Preparation preparation = {
      .device = device,
      .chooses = everyone.rank() == 0,
      .issue_passes =
          [&](Compute& to) {
            for (const auto& binder : binders) binder->issue_passes(to, stream);
          },
      .from_first = [&](const std::string& own) { return all_gather_texts(everyone, own).front(); },
      .tell =
          [&](const std::string& line) {
            if (tell) tell(line);
          }};
  if (!parts.compute->prepare(preparation)) return;
  const std::span<std::byte> memory = parts.arena->memory();
  const std::span<std::byte> workspace = binders.front()->kernel_workspace();
  const auto clear = [&](std::byte* from, const std::byte* to) {
    const auto words = static_cast<std::size_t>(to - from) / sizeof(float);
    if (words > 0) parts.compute->clear({from, words, DType::fp32}, stream);
  };
  clear(memory.data(), workspace.data());
  clear(workspace.data() + workspace.size(), memory.data() + memory.size());
  device.synchronize(stream);
}

}  // namespace shardwise::exec
