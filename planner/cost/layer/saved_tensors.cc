#include "planner/cost/layer/saved_tensors.h"

#include <algorithm>
#include <optional>

#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

constexpr std::int64_t kScaleBytes = 4;
constexpr std::int64_t kScaled = 128;  // elements that share a scale

/// Whether an operation's backward reads a tensor of its inputs, or the operation runs again on it.
bool reads_again(const OperationMemory& m, std::size_t read, bool again) {
  return m.keeps_read[read] || again;
}

/// The format in which an operation's backward takes its inputs.
SavedFormat format_of_inputs(const OperationSpec& op, const JobSpec& job) {
  if (op.kind == OpKind::gemm && op.tp != TpSplit::vocab && !op.fp32) {
    return job.saved_linear_inputs;
  }
  return op.kind == OpKind::activation ? job.saved_activation_inputs : SavedFormat::as_computed;
}

}  // namespace

bool saves_narrow(const JobSpec& job) {
  const SavedFormat formats[] = {job.saved_linear_inputs, job.saved_activation_inputs,
                                 job.saved_attention_outputs};
  return std::ranges::any_of(formats, [](SavedFormat f) { return f != SavedFormat::as_computed; });
}

std::int64_t saved_bytes(std::int64_t elements, SavedFormat format, std::int64_t element) {
  const std::int64_t scales = kScaleBytes * ceil_div(elements, kScaled);
  switch (format) {
    case SavedFormat::as_computed:
      break;
    case SavedFormat::fp8:
      return elements + scales;
    case SavedFormat::e5m6:
      return ceil_div(3 * elements, 2) + scales;
  }
  return elements * element;
}

SavedTensors saved_tensors(const std::vector<OperationMemory>& operations, const JobSpec& job,
                           std::int64_t element, const std::vector<bool>& again,
                           std::int64_t input) {
  SavedTensors saved;
  saved.bytes.push_back(input);
  for (const OperationMemory& m : operations) saved.bytes.push_back(m.output);
  saved.widened.assign(operations.size(), 0);
  if (!saves_narrow(job)) return saved;
  // The widest of the formats that its readers take; none where nobody reads it again.
  std::vector<std::optional<SavedFormat>> formats(saved.bytes.size());
  const auto ask = [&](std::size_t tensor, SavedFormat format) {
    const auto wider = [&](SavedFormat a, SavedFormat b) {
      return saved_bytes(kScaled, a, element) >= saved_bytes(kScaled, b, element) ? a : b;
    };
    std::optional<SavedFormat>& known = formats[tensor];
    known = known ? wider(*known, format) : format;
  };
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const OperationMemory& m = operations[i];
    for (int r = 0; r < m.num_reads; ++r) {
      const auto k = static_cast<std::size_t>(r);
      if (reads_again(m, k, again[i])) {
        ask(static_cast<std::size_t>(m.reads[k]), format_of_inputs(*m.operation, job));
      }
    }
  }
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const OperationMemory& m = operations[i];
    // Attention's backward reads its output, which the projection after it reads as well: one copy.
    const bool attention = m.operation->kind == OpKind::attention && m.keeps_output;
    if (attention) formats[i + 1] = job.saved_attention_outputs;
    const bool narrow =
        formats[i + 1].value_or(SavedFormat::as_computed) != SavedFormat::as_computed && !m.loss &&
        (attention || !m.keeps_output);
    if (narrow) {
      saved.bytes[i + 1] =
          std::min(m.output, saved_bytes(m.output / element, *formats[i + 1], element));
    }
  }
  const auto is_narrow = [&](int tensor) {
    return tensor > 0 && saved.bytes[static_cast<std::size_t>(tensor)] <
                             operations[static_cast<std::size_t>(tensor) - 1].output;
  };
  std::vector<bool> counted(saved.bytes.size());
  const bool narrow_products = job.precision == DType::fp8;  // which read 8 bits as they are
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const OperationMemory& m = operations[i];
    const auto widen = [&](int tensor) {
      if (!is_narrow(tensor)) return;
      const auto t = static_cast<std::size_t>(tensor);
      const std::int64_t both = operations[t - 1].output + saved.bytes[t];
      saved.widened[i] += operations[t - 1].output;
      saved.widening += both;
      ++saved.widening_kernels;
      if (counted[t]) return;
      counted[t] = true;
      saved.narrowing += both;
      ++saved.narrowing_kernels;
    };
    if (m.operation->kind == OpKind::gemm && narrow_products) continue;
    for (int r = 0; r < m.num_reads; ++r) {
      const auto k = static_cast<std::size_t>(r);
      if (reads_again(m, k, again[i])) widen(m.reads[k]);
    }
    if (m.keeps_output) widen(static_cast<int>(i) + 1);
  }
  return saved;
}

}  // namespace shardwise
