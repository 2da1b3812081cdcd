#include "planner/spec/program/step_program.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace shardwise {
namespace {

constexpr std::array<std::string_view, kStreams> kStreamNames = {"compute",
                                                                 "copy",
                                                                 "all_gather",
                                                                 "reduce_scatter",
                                                                 "outer_reduce",
                                                                 "tensor_parallel",
                                                                 "context_parallel",
                                                                 "expert_parallel",
                                                                 "send",
                                                                 "receive",
                                                                 "host_copy"};

constexpr std::array<std::string_view, kOpRoles> kRoleNames = {
    "fwd",      "bwd",         "bwd_input",     "bwd_weight",  "recompute",
    "cast",     "gather",      "gather_outer",  "copy_in",     "copy_out",
    "reshard",  "reduce",      "reduce_outer",  "sum",         "accumulate",
    "send_fwd", "receive_fwd", "send_bwd",      "receive_bwd", "offload",
    "reload",   "finalize",    "gradient_norm", "optimizer",   "gather_updated"};

}  // namespace

std::string_view name_of(Stream stream) { return kStreamNames[static_cast<std::size_t>(stream)]; }
std::string_view name_of(OpRole role) { return kRoleNames[static_cast<std::size_t>(role)]; }

std::string name_of(const StageProgram& stage, const ProgramOp& op) {
  std::string name(name_of(op.role));
  if (op.layer >= 0) name += fmt::format(".layer{}", op.layer);
  if (op.microbatch >= 0) name += fmt::format(".mb{}", op.microbatch);
  if (op.part >= 0) {
    const OpCost& cost = stage.costs[static_cast<std::size_t>(op.cost)];
    const bool named = !cost.kernels.empty() && !cost.kernels.front().name.empty();
    name += named ? fmt::format(".{}", cost.kernels.front().name) : fmt::format(".{}", op.part);
  }
  if (op.pass == Pass::backward) name += ".bwd";
  if (op.routed) name += ".experts";
  return name;
}

}  // namespace shardwise
