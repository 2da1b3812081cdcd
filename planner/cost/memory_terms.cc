#include "planner/cost/memory_terms.h"

#include <algorithm>

#include "planner/cost/arena_buffers.h"
#include "planner/cost/stage_buffers.h"
#include "planner/cost/stage_moments.h"
#include "planner/cost/stage_residents.h"
#include "planner/cost/state_bytes.h"

namespace shardwise {
namespace {

using enum MemoryCategory;
using enum MemoryPhase;

constexpr std::uint8_t bit(MemoryPhase phase) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(phase));
}
constexpr std::uint8_t kPasses = bit(first_forward_backward) | bit(steady_forward_backward);
constexpr std::uint8_t kSteps = bit(first_optimizer_step) | bit(steady_optimizer_step);
constexpr std::uint8_t kRunning = kPasses | kSteps;
constexpr std::uint8_t kAlways = kRunning | bit(after_init);
constexpr std::uint8_t kAfterFirstPass = kSteps | bit(steady_forward_backward);

Amount once(std::int64_t bytes) { return {1, bytes}; }

void add_states(StageTerms& terms, const StageStates& s, const MemoryRules& rules) {
  terms.add(weights, kAlways, "elements of a rank x bytes of a compute weight", s.weights);
  terms.add(weights, kAlways, "elements kept in fp8 x bytes of one", s.narrow_weights);
  terms.add(weights, kRunning, "bytes of fp8 matrices x casts kept of them", s.narrow_casts);
  terms.add(weights, kRunning, "scales of those casts x bytes of one", s.narrow_scales);
  terms.add(weights, kAlways, "frozen elements of a rank x bytes of a compute weight",
            s.frozen_weights);
  terms.add(main_weights, kAlways, "elements of a rank x bytes of a main weight", s.main_weights);
  terms.add(gradients, kAlways, "elements of a rank x bytes of a buffered gradient", s.gradients);
  terms.add(optimizer_moments, rules.engine->lazy_moments ? kAfterFirstPass : kAlways,
            "elements of a rank x bytes of its moments", s.moments);
  terms.add(gradients, kSteps, "elements of a rank x bytes of a gradient", s.late_gradients);
  terms.add(main_gradients, kSteps, "elements of a rank x bytes of a gradient cast for the step",
            s.cast_gradients);
  terms.add(optimizer_scratch, kSteps, "elements of a rank x bytes of the step's temporaries",
            s.step_scratch);
  terms.add(gradient_staging, kSteps, "elements of the flat copy x bytes of a gradient",
            s.flat_gradients);
  terms.add(gradient_staging, kSteps, "elements an all-to-all brings x bytes of a gradient",
            s.received_gradients);
}

void add_residents(StageTerms& terms, const StageResidents& r, const MemoryRules& rules) {
  terms.add(library_workspace, kRunning, "global buffer: gathered input, attention scores",
            r.gather_buffer);
  terms.add(library_workspace, kRunning, "BLAS handles of the framework x workspace",
            r.framework_workspace);
  terms.add(library_workspace, kRunning, "workspace of the engine's GEMMs", r.engine_workspace);
  terms.add(library_workspace, kRunning, "streams of grouped GEMMs x workspace",
            r.grouped_workspace);
  terms.add(library_workspace, kRunning, "streams of overlapped GEMMs x workspace",
            r.overlap_workspace);
  terms.add(library_workspace, kAlways, "workspace of our kernels on a GPU", r.kernel_workspace);
  terms.add(gradient_staging, kRunning,
            "elements of a placeholder for each shape of matrix x bytes of a weight",
            r.placeholders);
  terms.add(working, kAlways, "block of a step's tokens, losses, scalars and squares",
            r.step_block);
  terms.add(communicator, kAlways, "communicators x bytes of one", r.communicators);
  terms.add(runtime_context, kAlways, "context and loaded kernels", once(rules.runtime.context));
}

void add_gathered(StageTerms& terms, const Gathered& g, const MemoryRules& rules) {
  const auto add = [&](const char* formula, const WholeWeights& w) {
    terms.add(gathered_weights, kPasses, formula, w.wide(rules));
    terms.add(gathered_weights, kPasses, "gathered elements in fp8 x bytes of one", w.slim(rules));
  };
  add("elements of the running layer x bytes of a weight", g.unit);
  add("elements of gather outputs kept x bytes of a weight", g.output);
  add("elements gathered ahead x bytes of a weight", g.ahead);
  add("elements of embedding and head x bytes of a weight", g.root);
  add("elements of the shard cast to be sent x bytes of a weight", g.cast);
  add("elements of parts kept after forward x bytes of a weight", g.parts);
  add("elements of the units in the gather buffers x bytes of a weight", g.queue);
}

/// One term for all chunks of the stage that keep as much.
void add_in_flight(StageTerms& terms, const StageParts& parts, const HeldPasses& held) {
  const std::vector<std::int64_t>& saved = parts.chunk_saved;
  for (std::size_t c = 0; c < saved.size(); ++c) {
    if (std::find(saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(c), saved[c]) !=
        saved.begin() + static_cast<std::ptrdiff_t>(c)) {
      continue;
    }
    std::int64_t passes = 0;
    for (std::size_t other = c; other < saved.size(); ++other) {
      if (saved[other] == saved[c]) passes += held.of(static_cast<std::int32_t>(other));
    }
    terms.add(activations_in_flight, kPasses,
              saved.size() == 1
                  ? "other micro-batches in flight x activations of one"
                  : "activations of other chunks and micro-batches in flight x bytes of one",
              {passes, saved[c]});
  }
}

/// The first of `parts` and what of `whole` they leave, for the pieces of one moment.
void add_pass(StageTerms& terms, const StageParts& parts, const StageContext& context,
              const StageStates& states, const FullestMoment& at) {
  const StageMoment& moment = at.moment;
  const bool backward = at.backward;
  const PassMemory& pass = pass_of(moment, backward);
  const OtherLayers saved = other_layers(moment, backward, parts, context);
  terms.add(activations, kPasses, "activations of the running layer", once(pass.kept));
  terms.add(activations, kPasses, "earlier layers of its kind x activations of one", saved.alike);
  terms.add(activations, kPasses, "activations of the other earlier layers", saved.others);
  const bool planned = plans_buffers(*context.rules->engine);
  terms.add(activations, kPasses,
            planned ? "rest of the buffer for two layers, one moving to or from the host"
                    : "activations of the layer moving to or from the host",
            saved.on_its_way);
  terms.add(activations, kPasses, "activations of later layers for deferred weight gradients",
            saved.later);
  terms.add(activations, kPasses, "tables of the stage: rotary angles, attention mask",
            once(parts.tables));

  add_in_flight(terms, parts, other_passes(parts, context, moment.chunk, backward).held);

  terms.add(
      working, kPasses,
      backward ? "received gradient of the running operation" : "input of the operation that runs",
      once(pass.handed));
  terms.add(working, kPasses, backward ? "gradient of its input" : "its output", once(pass.made));
  terms.add(working, kPasses, "gradient of the residual stream", once(pass.residual));
  terms.add(working, kPasses, "temporaries of its kernels", once(pass.temporary));
  terms.add(working, kPasses,
            planned ? "buffers of messages x bytes of one" : "gradient sent to the stage before",
            message_buffers(parts, context));
  terms.add(logits_and_loss, kPasses, "logits and what the loss keeps", once(pass.loss_kept));
  terms.add(logits_and_loss, kPasses, "outputs, gradients and temporaries of the loss",
            once(pass.loss - pass.loss_kept));
  terms.add(recompute_scratch, kPasses, "recomputed activations", once(pass.recomputed));
  terms.add(gradient_staging, kPasses, "weight gradients of the running layer",
            once(pass.gradients));
  terms.add(gradients, kPasses, "elements of finished layers x bytes of a gradient",
            gradients_made(moment, backward, parts, context, states));

  const StageBuffers buffers = stage_buffers(parts, context);
  add_gathered(terms, gathered_weights_at(buffers, parts, context, moment, backward),
               *context.rules);
  const Staging staging = staging_at(buffers, parts, context, moment, backward);
  terms.add(gradient_staging, kPasses,
            "elements that wait for the last micro-batch x bytes of a gradient", staging.unreduced);
  terms.add(gradient_staging, kPasses, "elements of the reduction buffer x bytes of a gradient",
            staging.buffer);
  terms.add(gradient_staging, kPasses, "elements of the reduction queue x bytes of a gradient",
            staging.queue);
  terms.add(gradient_staging, kPasses,
            "elements of the largest of embedding and head x bytes of a gradient", staging.root);
  terms.add(gradient_staging, kPasses,
            "elements whose gradients join earlier micro-batches' x bytes of one", staging.beside);
  terms.add(gradient_staging, kPasses, "elements of the unit being reduced x bytes of a gradient",
            staging.unit);
  terms.add(gradient_staging, kPasses, "elements an all-to-all brings x bytes of a gradient",
            staging.received);
  terms.add(gradient_staging, kPasses, "elements of their shard x bytes of a sum", staging.sums);
}

}  // namespace

void StageTerms::add(MemoryCategory category, std::uint8_t phases, const char* formula,
                     const Amount& amount) {
  if (amount.bytes() == 0) return;
  terms_.push_back({category, phases, formula, amount});
}

StageTerms stage_terms(const StageParts& parts, const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const StageStates states = stage_states(parts, context);
  StageTerms terms;
  add_states(terms, states, rules);
  add_residents(terms, stage_residents(parts, context), rules);
  if (!parts.moments.empty()) {
    add_pass(terms, parts, context, states, fullest_moment(parts, context, states));
  }
  return terms;
}

}  // namespace shardwise
