#include "executor/kernels/cuda/kernel_preparation.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "executor/kernels/cuda/cuda_compute.h"
#include "executor/kernels/cuda/event_clock.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Has products and attention prepare the works that it is issued, and runs nothing.
class PreparingCompute final : public Compute {
 public:
  PreparingCompute(LinearKernels& products, AttentionKernels& attention, KernelTuning& tuning)
      : products_(products), attention_(attention), tuning_(tuning) {}

  void linear(const LinearWork& w, DeviceStream& /*stream*/) override {
    products_.prepare(w, tuning_);
  }
  void linear_backward_input(const LinearBackwardInputWork& w, DeviceStream& /*stream*/) override {
    products_.prepare(w, tuning_);
  }
  void linear_backward_weight(const LinearBackwardWeightWork& w,
                              DeviceStream& /*stream*/) override {
    products_.prepare(w, tuning_);
  }
  void attention(const AttentionWork& w, DeviceStream& /*stream*/) override {
    attention_.prepare(w, tuning_);
  }
  void attention_backward(const AttentionBackwardWork& w, DeviceStream& /*stream*/) override {
    attention_.prepare(w, tuning_);
  }
  void head(const HeadWork& w, DeviceStream& /*stream*/) override {
    for_head_chunks(w, [this](const HeadChunk& chunk) {
      products_.prepare(chunk.logits, tuning_);
      products_.prepare(chunk.weight, tuning_);
      products_.prepare(chunk.input, tuning_);
    });
  }

  // One kernel each: there is nothing to choose.
  void norm(const NormWork& /*w*/, DeviceStream& /*stream*/) override {}
  void norm_backward(const NormBackwardWork& /*w*/, DeviceStream& /*stream*/) override {}
  void rope_tables(const RopeTablesWork& /*w*/, DeviceStream& /*stream*/) override {}
  void rope(const RopeWork& /*w*/, DeviceStream& /*stream*/) override {}
  void gelu(const GeluWork& /*w*/, DeviceStream& /*stream*/) override {}
  void swiglu(const SwigluWork& /*w*/, DeviceStream& /*stream*/) override {}
  void swiglu_backward(const SwigluBackwardWork& /*w*/, DeviceStream& /*stream*/) override {}
  void embedding(const EmbeddingWork& /*w*/, DeviceStream& /*stream*/) override {}
  void embedding_backward(const EmbeddingBackwardWork& /*w*/, DeviceStream& /*stream*/) override {}
  void clear(const TensorView& /*tensor*/, DeviceStream& /*stream*/) override {}
  void cast(const TensorView& /*to*/, const ConstTensorView& /*from*/,
            DeviceStream& /*stream*/) override {}
  void accumulate(const TensorView& /*sum*/, const ConstTensorView& /*each*/,
                  DeviceStream& /*stream*/) override {}
  void scale(const ScaleWork& /*w*/, DeviceStream& /*stream*/) override {}
  void token_factor(const TokenFactorWork& /*w*/, DeviceStream& /*stream*/) override {}
  void sum_ranks(const SumRanksWork& /*w*/, DeviceStream& /*stream*/) override {}
  std::int64_t squares_bytes() const override { return 0; }
  void squares(const SquaresWork& /*w*/, DeviceStream& /*stream*/) override {}
  void squares_norm(const SquaresNormWork& /*w*/, DeviceStream& /*stream*/) override {}
  void check_gradients(const GradientCheckWork& /*w*/, DeviceStream& /*stream*/) override {}
  void adamw(const AdamWork& /*w*/, DeviceStream& /*stream*/) override {}

 private:
  LinearKernels& products_;
  AttentionKernels& attention_;
  KernelTuning& tuning_;
};

/// What this rank has chosen for its shapes; files may have those of others.
KernelChoices chosen_by(const LinearKernels& products, const AttentionKernels& attention,
                        const KernelTuning& tuning) {
  KernelChoices choices;
  products.add_to(choices);
  attention.add_to(choices);
  const auto of_another = [&](const auto& each) {
    return !tuning.timed.contains(each.first) && !tuning.kept.contains(each.first);
  };
  std::erase_if(choices.products, of_another);
  std::erase_if(choices.attention, of_another);
  return choices;
}

/// Says what cuBLASLt could not do, in a few lines.
void tell_dropped(const KernelTuning& tuning, const Preparation& preparation) {
  constexpr std::size_t kMostDropped = 8;
  std::size_t told = 0;
  for (const std::string& each : tuning.dropped) {
    if (told == kMostDropped) {
      preparation.tell(fmt::format("left out, and {} more", tuning.dropped.size() - told));
      return;
    }
    preparation.tell("left out: " + each);
    ++told;
  }
}

/// Keeps the choices. \returns where, or why not
std::string keep(const std::string& path, const KernelMachine& machine,
                 const KernelChoices& choices) {
  try {
    write_kernel_choices(path, machine, choices);
    return "kept in " + path;
  } catch (const IoError& broken) {
    return fmt::format("not kept: {}", broken.what());
  }
}

}  // namespace

void prepare_kernels(LinearKernels& products, AttentionKernels& attention,
                     std::span<std::byte> workspace, const KernelKeeping& keeping,
                     const Preparation& preparation) {
  const KernelMachine& machine = keeping.machine;
  const std::string path =
      keeping.folder.empty() ? "" : keeping.folder + "/" + kernel_choices_file(machine);
  const auto take = [&](const ReadKernelChoices& read) {
    if (!read.ignored.empty()) preparation.tell(read.ignored);
    products.take(read.choices);
    attention.take(read.choices);
  };
  if (!preparation.chooses) {
    take(parse_kernel_choices(preparation.from_first(""), "choices of rank 0", machine));
  } else if (!path.empty()) {
    take(read_kernel_choices(path, machine));
  }
  const Clock::time_point begin = Clock::now();
  Clock::time_point told = begin;
  EventClock clock(preparation.device, keeping.seconds_each);
  KernelTuning tuning = {.clock = clock, .workspace = workspace};
  tuning.progress = [&] {
    constexpr double kSilence = 2;
    if (!preparation.chooses || seconds_since(told) < kSilence) return;
    told = Clock::now();
    preparation.tell(fmt::format("choosing kernels: {} shapes timed in {:.0f} s",
                                 tuning.timed.size(), seconds_since(begin)));
  };
  PreparingCompute preparing(products, attention, tuning);
  preparation.issue_passes(preparing);
  if (!preparation.chooses) return;
  tell_dropped(tuning, preparation);
  const KernelChoices choices = chosen_by(products, attention, tuning);
  preparation.from_first(to_json(machine, choices));
  if (tuning.timed.empty() && tuning.kept.empty()) return;
  std::string line = fmt::format("kernels of {} shapes: {} timed in {:.1f} s, {} as kept",
                                 tuning.timed.size() + tuning.kept.size(), tuning.timed.size(),
                                 seconds_since(begin), tuning.kept.size());
  if (path.empty()) {
    line += "; not kept";
  } else if (tuning.timed.empty()) {
    line += " in " + path;
  } else {
    line += "; " + keep(path, machine, choices);
  }
  preparation.tell(line);
}

}  // namespace shardwise::exec
