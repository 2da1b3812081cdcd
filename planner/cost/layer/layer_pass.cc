#include "planner/cost/layer/layer_pass.h"

#include <algorithm>
#include <span>

namespace shardwise {
namespace {

/// The layer as a walk sees it: sizes of tensors, and who needs them last in backward.
class TensorWalk {
 public:
  TensorWalk(const std::vector<OperationMemory>& operations, const PassRules& rules)
      : operations_(operations), rules_(rules), kept_(kept_tensors(operations, rules)) {
    bytes_.push_back(rules.input);
    for (const OperationMemory& m : operations) bytes_.push_back(m.output);
    first_need_.assign(bytes_.size(), -1);
    for (int i = static_cast<int>(operations.size()) - 1; i >= 0; --i) {
      const OperationMemory& m = operation(i);
      for (int r = 0; r < m.num_reads; ++r) {
        if (m.keeps_read[static_cast<std::size_t>(r)])
          need(m.reads[static_cast<std::size_t>(r)], i);
      }
      if (m.keeps_output) need(i + 1, i);
    }
  }

  void forward(LayerMemory& memory) const;
  void backward(LayerMemory& memory) const;

 private:
  const OperationMemory& operation(int i) const { return operations_[static_cast<std::size_t>(i)]; }
  std::int64_t bytes(int tensor) const { return bytes_[static_cast<std::size_t>(tensor)]; }
  /// Bytes of a tensor while it waits for backward.
  std::int64_t waiting(int tensor) const {
    return rules_.whole_layer_again ? bytes(tensor)
                                    : rules_.saved.bytes[static_cast<std::size_t>(tensor)];
  }
  /// What operation i's backward reads of saved tensors, widened again.
  std::int64_t widened(int i) const {
    return rules_.whole_layer_again ? 0 : rules_.saved.widened[static_cast<std::size_t>(i)];
  }
  bool kept(int tensor) const { return kept_.tensor[static_cast<std::size_t>(tensor)]; }
  bool wanted(int tensor) const { return kept_.wanted[static_cast<std::size_t>(tensor)]; }
  bool keeps_copies(int i) const { return kept_.copies[static_cast<std::size_t>(i)]; }
  bool is_loss(int tensor) const { return tensor > 0 && operation(tensor - 1).loss; }
  /// The operation that hands on a tensor; joined ones are the first of theirs.
  static int producer(int tensor) { return tensor - 1; }
  /// What an operation needs and has to be computed again for it alone.
  std::int64_t scratch(int i) const;
  /// Frees what no earlier operation needs.
  void release(int i, PassMemory& now) const;
  /// Whether the gradient of what operation i hands on is the residual stream's, counted already.
  bool shares_gradient(int i) const;
  /// Whether what operation i hands on is the stream, which is there already.
  bool writes_stream(int i) const;
  /// Whether the gradient of a tensor takes its place: nobody needs it when its gradient is made.
  bool holds_gradient(int tensor) const;
  /// Gradients that wait when operation i has run backward: operations after it have made them, and
  /// no one has read them yet.
  std::int64_t waiting_gradients(int i) const;
  /// Whether operation i is the norm before a branch, of those that read one tensor of the residual
  /// stream the first: its gradient joins the stream's, which waits for no other.
  bool ends_branches(int i) const;
  /// Adds what PyTorch's gated activation still has of its gate while operation i, which made what
  /// it is multiplied by, runs backward: only then comes the activation function's turn.
  void hold_gate(int i, PassMemory& now) const;
  /// Whether operation i makes gradients of a matrix of the layer's own.
  bool makes_gradients(int i, const LayerParameters& parameters) const;
  /// The bytes of operation i's gradients: of what it handed on and of what it was handed.
  std::int64_t incoming(int i) const;
  std::int64_t outgoing(int i) const;
  void need(int tensor, int by) { first_need_[static_cast<std::size_t>(tensor)] = by; }
  int needed_until(int tensor) const { return first_need_[static_cast<std::size_t>(tensor)]; }
  std::int64_t copies(int i) const { return operation(i).copies + operation(i).statistics; }
  std::int64_t weight_gradient(int i) const {
    const OperationMemory& m = operation(i);
    return m.weight_rows * m.weight_columns * m.weights * rules_.gradient_bytes;
  }

  const std::vector<OperationMemory>& operations_;
  const PassRules& rules_;
  KeptTensors kept_;
  std::vector<std::int64_t> bytes_;
  std::vector<int> first_need_;  // earliest operation whose backward needs the tensor; -1 = none
};

bool is_stream_residual(const OperationMemory& m) {
  return m.operation->kind == OpKind::residual && m.operation->name != "mlp.shared_residual";
}

/// Behind dropout a branch gets a gradient of its own; without it, the stream's.
std::int64_t dropout_gradient(const OperationMemory& residual) {
  return residual.copies > 0 ? residual.output : 0;
}

std::int64_t TensorWalk::scratch(int i) const {
  const OperationMemory& m = operation(i);
  std::int64_t sum = keeps_copies(i) ? 0 : copies(i);
  for (int r = 0; r < m.num_reads; ++r) {
    const auto k = static_cast<std::size_t>(r);
    if (m.keeps_read[k] && !kept(m.reads[k])) sum += bytes(m.reads[k]);
  }
  if (m.keeps_output && !kept(i + 1)) sum += bytes(i + 1);
  return sum;
}

void TensorWalk::release(int i, PassMemory& now) const {
  for (int t = 0; t < static_cast<int>(bytes_.size()); ++t) {
    // With its gradient in its place, a tensor stays until that was read.
    if ((holds_gradient(t) ? producer(t) : needed_until(t)) != i) continue;
    if (kept(t)) {
      (is_loss(t) ? now.loss : now.kept) -= waiting(t);
    } else if (rules_.again_at_once && wanted(t)) {
      now.recomputed -= bytes(t);
    }
  }
}

bool TensorWalk::shares_gradient(int i) const {
  const int next = i + 1;
  if (next >= static_cast<int>(operations_.size())) return false;
  const OperationMemory& after = operation(next);
  // One of another type is a tensor of its own.
  return is_stream_residual(after) && after.copies == 0 && after.output == operation(i).output;
}

bool TensorWalk::writes_stream(int i) const {
  if (rules_.stream == 0) return false;
  const OperationMemory& m = operation(i);
  return is_stream_residual(m) || m.operation->kind == OpKind::embedding || shares_gradient(i);
}

bool TensorWalk::holds_gradient(int tensor) const {
  return rules_.stream > 0 && tensor > 0 && wanted(tensor) && !writes_stream(tensor - 1) &&
         waiting(tensor) == bytes(tensor) && needed_until(tensor) > producer(tensor);
}

std::int64_t TensorWalk::incoming(int i) const {
  const OperationMemory& m = operation(i);
  const bool shared = is_stream_residual(m) || shares_gradient(i) || writes_stream(i);
  return shared || holds_gradient(i + 1) ? 0 : m.output;
}

std::int64_t TensorWalk::outgoing(int i) const {
  const OperationMemory& m = operation(i);
  if (is_stream_residual(m)) return dropout_gradient(m);
  if (rules_.stream == 0) return m.input_gradient;
  // Added to the stream's, turned in place, or in the place of what was read.
  const bool norms_stream = m.operation->kind == OpKind::norm && m.output == rules_.stream;
  const int read = m.num_reads > 0 ? m.reads[0] : 0;
  const bool in_place =
      m.operation->kind == OpKind::rope || (holds_gradient(read) && needed_until(read) == i);
  return norms_stream || in_place ? 0 : m.input_gradient;
}

std::int64_t TensorWalk::waiting_gradients(int i) const {
  std::int64_t sum = 0;
  for (int t = 1; t <= i; ++t) {
    // Those of the residual stream are counted with it.
    const bool stream = is_stream_residual(operation(t - 1)) || shares_gradient(t - 1);
    if (stream || writes_stream(t - 1) || holds_gradient(t)) continue;
    const auto reads = [&](const OperationMemory& m) {
      const auto tensors = std::span(m.reads).first(static_cast<std::size_t>(m.num_reads));
      return !m.joined && std::ranges::find(tensors, t) != tensors.end();
    };
    const auto later = std::span(operations_).subspan(static_cast<std::size_t>(i) + 1);
    if (std::ranges::any_of(later, reads)) sum += bytes(t);
  }
  return sum;
}

bool TensorWalk::ends_branches(int i) const {
  const OperationMemory& norm = operation(i);
  if (norm.operation->kind != OpKind::norm) return false;
  const int stream = norm.reads[0];
  const bool reads_stream = stream == 0 || is_stream_residual(operation(stream - 1));
  const auto before = std::span(operations_).first(static_cast<std::size_t>(i));
  return reads_stream && std::ranges::none_of(before, [&](const OperationMemory& m) {
           return m.operation->kind == OpKind::norm && m.reads[0] == stream;
         });
}

void TensorWalk::hold_gate(int i, PassMemory& now) const {
  for (const OperationMemory& m : operations_) {
    const bool parted = m.operation->kind == OpKind::activation && m.operation->gated;
    if (!parted || m.copies == 0 || m.num_reads < 2 || m.reads[1] != i + 1) continue;
    const int gate = m.reads[0];
    if (kept(gate)) {
      now.kept += waiting(gate);
    } else if (rules_.again_at_once && wanted(gate)) {
      now.recomputed += bytes(gate);
    }
  }
}

bool TensorWalk::makes_gradients(int i, const LayerParameters& parameters) const {
  const OperationMemory& m = operation(i);
  const bool table = m.operation->tp == TpSplit::vocab;
  return m.weights > 0 && (!table || parameters.vocabulary > 0);
}

void note(PassMemory& best, const PassMemory& now) {
  if (now.peak > best.peak) best = now;
}

/// Adds what an operation has just made of the layer's weight gradients.
/// \param now  when it has freed what it read
void add_made(std::int64_t elements, const PassMemory& now, std::int64_t handed, std::int64_t made,
              std::int64_t residual, LayerMemory& memory) {
  std::vector<GradientsMade>& all = memory.leaving.made;
  PassMemory pass = now;
  pass.gradients = 0;
  pass.loss_kept = pass.loss;
  pass.handed = handed;
  pass.made = made;
  pass.residual = residual;
  pass.peak = pass.kept + pass.recomputed + pass.loss + handed + made + residual;
  all.push_back({elements + (all.empty() ? 0 : all.back().elements), pass});
}

void TensorWalk::forward(LayerMemory& memory) const {
  PassMemory now;
  // What the operation before made, if not kept and not the stream.
  std::int64_t handed = kept(0) || rules_.stream > 0 ? 0 : bytes(0);
  now.kept = kept(0) ? bytes(0) : 0;
  std::int64_t loss_handed = 0;
  for (int i = 0; i < static_cast<int>(operations_.size()); ++i) {
    const OperationMemory& m = operation(i);
    if (m.joined) continue;
    (m.loss ? now.loss : now.kept) += keeps_copies(i) ? copies(i) : 0;
    const std::int64_t temporary = m.forward_extra + (keeps_copies(i) ? 0 : copies(i));
    const std::int64_t made = writes_stream(i) ? 0 : m.output;
    PassMemory at = now;
    at.loss += loss_handed + (m.loss ? m.output + m.forward_extra : 0);
    at.peak = now.kept + now.loss + handed + made + temporary + rules_.stream;
    at.loss_kept = now.loss;
    at.handed = handed - loss_handed;
    at.made = m.loss ? 0 : made;
    at.residual = rules_.stream;
    at.temporary = temporary - (m.loss ? m.forward_extra : 0);
    note(memory.forward, at);
    if (rules_.loss_apart && m.operation->kind != OpKind::loss) {
      note(memory.forward_beside_loss, at);
    }
    if (kept(i + 1)) (m.loss ? now.loss : now.kept) += waiting(i + 1);
    if (kept(i + 1) && waiting(i + 1) == m.output) {
      handed = 0;
      loss_handed = 0;
    } else {
      handed = made;
      loss_handed = m.loss ? m.output : 0;
    }
  }
  memory.saved = now.kept;
}

void TensorWalk::backward(LayerMemory& memory) const {
  const int last = static_cast<int>(operations_.size()) - 1;
  PassMemory now;
  now.kept = kept(0) ? bytes(0) : 0;
  // What is alive when backward starts, and what appears as operations are computed again.
  for (int i = 0; i <= last; ++i) {
    if (operation(i).joined) continue;
    if (keeps_copies(i)) {
      (operation(i).loss ? now.loss : now.kept) += copies(i);
    } else if (rules_.again_at_once) {
      now.recomputed += copies(i);
    }
    if (kept(i + 1)) {
      (operation(i).loss ? now.loss : now.kept) += waiting(i + 1);
    } else if (rules_.again_at_once && wanted(i + 1)) {
      now.recomputed += bytes(i + 1);
    }
  }
  // Our kernels add all weight gradients of a layer to tensors that are there when it begins.
  const bool accumulated = rules_.weight_gradients == WeightGradients::accumulated;
  const bool at_once = rules_.stream > 0 && accumulated;
  if (at_once) {
    now.gradients = (memory.parameters.dense + memory.parameters.routed) * rules_.gradient_bytes;
  }
  // Gradient of the residual stream, alive while a branch runs.
  std::int64_t residual = rules_.stream;
  for (int i = last; i >= 0; --i) {
    const OperationMemory& m = operation(i);
    if (m.joined) continue;
    const bool adds_stream = is_stream_residual(m);
    if (adds_stream) residual = m.output;
    PassMemory at = now;
    at.recomputed += rules_.again_at_once ? 0 : scratch(i);
    const std::int64_t own = at_once ? 0 : weight_gradient(i);
    if (rules_.weight_gradients != WeightGradients::fused) at.gradients += own;
    const std::int64_t given = incoming(i);
    const std::int64_t made = outgoing(i);
    const bool logits_gradient = m.operation->kind == OpKind::loss;
    if (m.loss) at.loss += given + m.backward_extra + (logits_gradient ? made : 0);
    at.loss_kept = now.loss;
    at.handed = m.loss ? 0 : given;
    at.made = logits_gradient ? 0 : made;
    at.residual = residual;
    at.temporary = m.loss ? 0 : m.backward_extra + widened(i);
    at.peak = at.kept + at.recomputed + at.loss + at.gradients + at.handed + at.made + at.residual +
              at.temporary;
    note(memory.backward, at);
    PassMemory leaving = at;
    if (accumulated && !at_once) leaving.gradients = own;
    leaving.peak += leaving.gradients - at.gradients;
    note(memory.leaving.fullest, leaving);
    // The head's product is done, its norm begins.
    const bool done = i < last && operation(i + 1).weight_rows > 0 && operation(i + 1).loss;
    if (done) {
      memory.reduction = {};
      memory.reduction.kept = at.kept;
      memory.reduction.handed = given;
      memory.reduction.peak = at.kept + given;
    }
    if (m.operation->kind != OpKind::loss) {
      note(memory.backward_beside_loss, at);
    }

    if (accumulated) now.gradients += own;
    // The gradient of a table, its temporary while it is made, stays as well.
    if (accumulated && m.operation->kind == OpKind::embedding) now.gradients += m.backward_extra;
    // A norm's own gradient is made first.
    if (accumulated && m.operation->kind == OpKind::norm) {
      add_made(0, now, given, 0, residual, memory);
    }
    if (keeps_copies(i)) {
      (m.loss ? now.loss : now.kept) -= copies(i);
    } else if (rules_.again_at_once) {
      now.recomputed -= copies(i);
    }
    release(i, now);
    if (accumulated && makes_gradients(i, memory.parameters)) {
      const std::int64_t elements = m.weight_rows * m.weight_columns * m.weights;
      PassMemory then = now;
      hold_gate(i, then);
      add_made(elements, then, waiting_gradients(i), made, residual, memory);
    }
    // Added to the gradient that leaves the branch.
    if (rules_.stream == 0 && ends_branches(i)) residual = 0;
  }
}

}  // namespace

KeptTensors kept_tensors(const std::vector<OperationMemory>& operations, const PassRules& rules) {
  const std::size_t n = operations.size();
  KeptTensors kept;
  kept.tensor.assign(n + 1, false);
  kept.wanted.assign(n + 1, false);
  kept.copies.assign(n, false);
  for (std::size_t i = 0; i < n; ++i) {
    const OperationMemory& m = operations[i];
    for (int r = 0; r < m.num_reads; ++r) {
      const auto k = static_cast<std::size_t>(r);
      if (m.keeps_read[k]) kept.wanted[static_cast<std::size_t>(m.reads[k])] = true;
    }
    if (m.keeps_output) kept.wanted[i + 1] = true;
    kept.copies[i] = !rules.again[i] && !rules.whole_layer_again;
    // Who computes its input again casts it again.
    if (m.copies_input && m.reads[0] > 0 && !rules.interiors_only &&
        rules.again[static_cast<std::size_t>(m.reads[0] - 1)]) {
      kept.copies[i] = false;
    }
  }
  if (rules.whole_layer_again) {
    kept.tensor[0] = true;
    return kept;
  }
  for (std::size_t t = n; t > 0; --t) {
    if (!kept.wanted[t]) continue;
    if (!rules.again[t - 1] || rules.interiors_only) {
      kept.tensor[t] = true;
      if (!rules.again[t - 1]) continue;
    }
    const OperationMemory& m = operations[t - 1];
    for (int r = 0; r < m.num_reads; ++r) {
      kept.wanted[static_cast<std::size_t>(m.reads[static_cast<std::size_t>(r)])] = true;
    }
  }
  kept.tensor[0] = kept.wanted[0];
  if (!rules.region) return kept;
  for (std::size_t i = 0; i < n; ++i) {
    const OpKind kind = operations[i].operation->kind;
    const bool product = kind == OpKind::gemm || kind == OpKind::attention;
    if (product && !rules.again[i]) kept.tensor[i + 1] = true;
  }
  return kept;
}

void walk_layer(const std::vector<OperationMemory>& operations, const PassRules& rules,
                LayerMemory& memory) {
  const TensorWalk walk(operations, rules);
  walk.forward(memory);
  walk.backward(memory);
}

}  // namespace shardwise
